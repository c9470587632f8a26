// The server of Node's own documentation, with a counter. Prints its port.
const http = require('node:http');

let requests = 0;
const server = http.createServer((request, response) => {
  if (request.url === '/count') {
    response.end(String(requests));
    return;
  }
  requests += 1;
  response.writeHead(200, { 'Content-Type': 'text/plain' });
  response.end('Hello, world!');
});
server.listen(0, '127.0.0.1', 4096, () => console.log(server.address().port));
