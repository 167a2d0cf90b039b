// SPDX-License-Identifier: BSD-2-Clause
// browser.js MODULE: Chromium, told on stdin what to do: an array a line, of a
// function's name below and its arguments.  Each is answered with a line of
// JSON, what it returned or {"error": ...}.  MODULE is playwright-core's path.
'use strict';

const readline = require('readline');
const { chromium } = require(process.argv[2]);

let browser, page;
let said = [];

const actions = {
    // A fresh page; options are those of Playwright's newContext().
    async open(url, options) {
        if (page)
            await page.context().close();
        said = [];
        page = await (await browser.newContext(options)).newPage();
        page.on('console', (m) => said.push(`${m.type()}: ${m.text()}`));
        page.on('pageerror', (e) => said.push(`uncaught: ${e.message}`));
        page.on('requestfailed', (r) => said.push(`failed: ${r.url()}`));
        page.on('request', (r) => {
            if (new URL(r.url()).origin !== new URL(url).origin &&
                !r.url().startsWith('data:'))
                said.push(`elsewhere: ${r.url()}`);
        });
        await page.addInitScript(() => document.addEventListener(
            'securitypolicyviolation', (e) => console.error(
                'violation: ' + e.violatedDirective + ' ' + e.blockedURI)));
        const response = await page.goto(url);
        return response.status();
    },
    async close() {
        if (page)
            await page.context().close();
        page = null;
        said = [];
    },
    // What the page's console and the policy have had to say.
    said: async () => said,
    run: (code) => page.evaluate(code),
    press: (key) => page.keyboard.press(key),
    type: (text) => page.keyboard.type(text),
    resize: (width, height) => page.setViewportSize({ width, height }),
    look: (options) => page.emulateMedia(options),
    // What a screen reader is told, as YAML.
    heard: () => page.locator('body').ariaSnapshot(),
    shot: (path, options) => page.screenshot({ path, ...options })
        .then(() => path),
};

async function main() {
    browser = await chromium.launch({
        executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
        args: ['--no-sandbox', '--disable-background-networking'],
    });
    console.log('"ready"');
    for await (const line of readline.createInterface(process.stdin)) {
        const [name, ...rest] = JSON.parse(line);
        let answer;

        try {
            answer = await actions[name](...rest);
        } catch (e) {
            answer = { error: e.message };
        }
        console.log(JSON.stringify(answer === undefined ? null : answer));
    }
    await browser.close();
}

main();
