// SPDX-License-Identifier: BSD-2-Clause
// road.js: how a client of Node's reaches a server through penstock.
'use strict';

const http = require('http');
const HttpsProxyAgent = require('https-proxy-agent');

// An agent that asks a proxy for whole URLs, for those who can't themselves.
class ForwardAgent extends http.Agent {
    constructor(proxyPort) {
        super();
        this.proxyPort = proxyPort;
    }

    addRequest(request, options) {
        request.path = `http://${options.host}:${options.port}` +
            request.path;
        super.addRequest(request,
            { ...options, host: '127.0.0.1', port: this.proxyPort });
    }
}

// kind: gateway, forward or connect; port: penstock's; origin: the server's.
// request() is http.request to the server's path, wrap() the agent for who
// knows only the server; `port` is the one to tell them.
module.exports = (kind, port, origin) => {
    const server = `127.0.0.1:${origin}`;
    const tunnel = new HttpsProxyAgent(`http://127.0.0.1:${port}`);

    return {
        port: kind === 'gateway' ? port : origin,
        request(options) {
            const to = { host: '127.0.0.1', port, ...options };

            if (kind === 'forward') {
                to.path = `http://${server}${options.path}`;
                to.headers = { Host: server, ...options.headers };
            } else if (kind === 'connect') {
                to.port = origin;
                to.agent = tunnel;
            }
            return http.request(to);
        },
        wrap: () => kind === 'gateway' ? new http.Agent() :
            kind === 'forward' ? new ForwardAgent(port) : tunnel,
    };
};
