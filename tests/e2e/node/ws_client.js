// SPDX-License-Identifier: BSD-2-Clause
// ws_client.js KIND PORT ORIGIN: WebSockets through penstock, to ws_server.js;
// KIND and the ports are those of road.js.
'use strict';

const assert = require('assert');
const crypto = require('crypto');
const WebSocket = require('ws');
const makeRoad = require('./road.js');

const [kind, port, origin] = process.argv.slice(2);
const road = makeRoad(kind, Number(port), Number(origin));

// Send messages of 1 MiB and small ones all at once; each must come back.
function converse(perMessageDeflate) {
    return new Promise((resolve, reject) => {
        const socket = new WebSocket(`ws://127.0.0.1:${road.port}/`,
            { agent: road.wrap(), perMessageDeflate });
        const sent = [];
        let received = 0;

        for (let i = 0; i < 4; i++)
            sent.push(crypto.randomBytes(1 << 20), Buffer.from(`text ${i}`),
                Buffer.alloc(0));
        socket.on('error', reject);
        socket.on('open', () => {
            assert.strictEqual(socket.extensions,
                perMessageDeflate ? 'permessage-deflate' : '');
            for (const message of sent)
                socket.send(message);
            socket.ping('still there');
        });
        let ponged = false;
        socket.on('pong', (data) => {
            ponged = data.toString() === 'still there';
        });
        socket.on('message', (data) => {
            assert(data.equals(sent[received]), `message ${received}`);
            if (++received === sent.length)
                socket.close(1000, 'done');
        });
        socket.on('close', (code) => {
            assert.strictEqual(code, 1000);
            assert(ponged);
            resolve(received);
        });
    });
}

Promise.all([converse(false), converse(false), converse(true)]).then(
    (received) => {
        console.log(JSON.stringify(
            { sockets: received.length, received: received[0] }));
        process.exit(0);
    }, (error) => {
        console.error(error);
        process.exit(1);
    });
