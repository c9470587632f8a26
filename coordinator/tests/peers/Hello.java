import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/** The JDK's own HTTP server, with a counter. Prints its port. */
public class Hello {
    private static final byte[] HELLO = "Hello, world!".getBytes();
    private static final AtomicLong requests = new AtomicLong();

    public static void main(String[] arguments) throws IOException {
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        HttpServer server = HttpServer.create(any, 4096);
        server.createContext("/", exchange -> {
            requests.incrementAndGet();
            answer(exchange, HELLO);
        });
        server.createContext("/count",
            exchange -> answer(exchange, String.valueOf(requests.get()).getBytes()));
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
        System.out.println(server.getAddress().getPort());
    }

    private static void answer(HttpExchange exchange, byte[] body) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", "text/plain");
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
