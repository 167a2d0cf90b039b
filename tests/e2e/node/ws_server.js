// SPDX-License-Identifier: BSD-2-Clause
// ws_server.js PORT: a WebSocket server that sends every message back.
'use strict';

const { WebSocketServer } = require('ws');

const server = new WebSocketServer({
    host: '127.0.0.1', port: Number(process.argv[2]),
    perMessageDeflate: true,
});

server.on('connection', (socket) => {
    socket.on('error', () => {});
    socket.on('message', (data, isBinary) =>
        socket.send(data, { binary: isBinary }));
});
