// SPDX-License-Identifier: BSD-2-Clause
// origin.js PORT: Node's http server.  It answers with what the request was,
// as echo of servers.py does, and prints a line [method, target] for each;
// what is sent after an upgrade to "echo" comes back.  What is asked for below
// /trailers/ is answered in chunks, with X-Sum: LENGTH and trailers that the
// client sent as the last fields.
'use strict';

const fs = require('fs');
const http = require('http');

const server = http.createServer((request, response) => {
    const parts = [];

    fs.writeSync(1, JSON.stringify([request.method, request.url]) + '\n');
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
        const body = Buffer.concat(parts);
        const token = request.headers['x-token'] || '-';
        const line = `${request.method} ${token} ${body.length}\n`;

        const trailed = request.url.startsWith('/trailers/');

        response.writeHead(200, {
            'X-Token': token,
            'Content-Type': 'application/octet-stream',
            ...(trailed ? { 'Trailer': 'X-Sum, X-Got' } :
                { 'Content-Length': line.length + body.length }),
        });
        response.write(line);
        if (trailed)
            response.addTrailers({
                'X-Sum': body.length,
                'X-Got': JSON.stringify(request.trailers),
            });
        response.end(body);
    });
});

server.on('upgrade', (request, socket, early) => {
    fs.writeSync(1, JSON.stringify([request.method, request.url]) + '\n');
    socket.write('HTTP/1.1 101 Switching Protocols\r\n' +
        'Upgrade: echo\r\nConnection: Upgrade\r\n\r\n');
    socket.write(early);
    socket.pipe(socket);
});

server.listen(Number(process.argv[2]), '127.0.0.1');
