// SPDX-License-Identifier: BSD-2-Clause
// client.js WHAT KIND PORT ORIGIN: Node's http as a client of penstock; KIND
// and the ports are those of road.js.  WHAT is the name of a function below;
// it fails unless all is as it should be, and what it returns is printed.
'use strict';

const assert = require('assert');
const crypto = require('crypto');
const http = require('http');
const makeRoad = require('./road.js');

const [what, kind, port, origin] = process.argv.slice(2);
const road = makeRoad(kind, Number(port), Number(origin));

// Send a request; give(request) sends its body.  The answer must be echo's.
function ask(method, token, agent, body, give, fields, path = '') {
    return new Promise((resolve, reject) => {
        const request = road.request({
            path: `/${path}${token}`, method, agent,
            headers: { 'X-Token': token, ...fields },
        });

        request.on('error', reject);
        request.on('response', (response) => {
            const parts = [];

            response.on('error', reject);
            response.on('data', (part) => parts.push(part));
            response.on('end', () => {
                const line = `${method} ${token} ${body.length}\n`;
                const content = Buffer.concat(parts);

                assert.strictEqual(response.statusCode, 200);
                assert.strictEqual(response.headers['x-token'], token);
                assert(content.equals(method === 'HEAD' ? Buffer.alloc(0) :
                    Buffer.concat([Buffer.from(line), body])), token);
                resolve(response);
            });
        });
        give(request);
    });
}

// 100 requests, four at a time, on no more connections than that.
async function keepalive() {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
    const methods = ['GET', 'POST', 'HEAD', 'PUT', 'DELETE'];
    const sockets = new Set();
    const asked = [];

    for (let i = 0; i < 100; i++) {
        const method = methods[i % methods.length];
        const body = crypto.randomBytes(
            ['POST', 'PUT'].includes(method) ? i * 397 : 0);

        asked.push(ask(method, `n${i}`, agent, body, (request) => {
            request.on('socket', (socket) => sockets.add(socket));
            request.end(body);
        }));
    }
    await Promise.all(asked);
    agent.destroy();
    return { requests: asked.length, sockets: sockets.size };
}

// Bodies without a length, in writes of odd sizes.
async function chunked() {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    let requests = 0;

    for (const size of [0, 1, 4095, 70001, 3 << 20]) {
        const body = crypto.randomBytes(size);

        await ask('POST', `n${size}`, agent, body, (request) => {
            for (let at = 0, n = 1; at < size; at += n, n = n * 3 + 1)
                request.write(body.subarray(at, at + n));
            request.end();
        }, { 'Transfer-Encoding': 'chunked' });
        requests++;
    }
    agent.destroy();
    return { requests };
}

// The body is sent when the server has said that it wants it.
async function expect() {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    let continued = 0;

    for (let i = 0; i < 5; i++) {
        const body = crypto.randomBytes(10000);

        await ask('POST', `n${i}`, agent, body, (request) => {
            request.on('continue', () => {
                continued++;
                request.end(body);
            });
            request.flushHeaders();
        }, { 'Expect': '100-continue', 'Content-Length': body.length });
    }
    agent.destroy();
    return { requests: 5, continued };
}

// Trailers come to who asks for them, and go nowhere.
async function trailers() {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const got = [];

    for (const fields of [{}, { 'TE': 'trailers', 'Connection': 'TE' }]) {
        const body = crypto.randomBytes(50000);
        const response = await ask('POST', 'n', agent, body, (request) => {
            request.write(body.subarray(0, 20000));
            request.addTrailers({ 'X-Mine': '1' });
            request.end(body.subarray(20000));
        }, { 'Transfer-Encoding': 'chunked', 'Trailer': 'X-Mine', ...fields },
        'trailers/');

        got.push(response.trailers);
    }
    agent.destroy();
    return { got };
}

// What is written after an upgrade comes back, all of it, up to the end.
function upgrade() {
    return new Promise((resolve, reject) => {
        const body = crypto.randomBytes(1 << 20);
        const request = road.request({
            path: '/up',
            headers: { 'Connection': 'Upgrade', 'Upgrade': 'echo' },
        });

        request.on('error', reject);
        request.on('response', (response) =>
            reject(new Error(`no upgrade: ${response.statusCode}`)));
        request.on('upgrade', (response, socket, early) => {
            const parts = [early];

            assert.strictEqual(response.headers.upgrade, 'echo');
            socket.on('error', reject);
            socket.on('data', (part) => parts.push(part));
            socket.on('end', () => {
                assert(Buffer.concat(parts).equals(body));
                resolve({ requests: 1 });
            });
            socket.end(body);
        });
        request.end();
    });
}

({ keepalive, chunked, expect, upgrade, trailers })[what]().then((result) => {
    console.log(JSON.stringify(result));
}, (error) => {
    console.error(error);
    process.exit(1);
});
