// HTTP/2 with clients over TLS: how a connection's protocol follows from codec_type, ALPN and its first bytes, and programs that speak it.

import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { join } from 'node:path';
import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import { opening, request } from '../harness/http2-frames.js';
import {
  bootstrap,
  type Config,
  findPeer,
  openPage,
  routeAllTo,
  startBaton,
  startBrowser,
  staticCluster,
  type Teardown,
  tempDir,
} from '../harness/index.js';
import { exchange } from '../http/h2/http2-client.js';
import { httpsListener, secureConnection, serverTls, startPlainHost } from './contexts.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test', 'localhost', { type: 'ip', value: '127.0.0.1' }] });
const ca = root.certificate;

const HELLO: Config = {
  route_config: {
    virtual_hosts: [
      {
        name: 'all',
        domains: ['*'],
        routes: [
          {
            match: { prefix: '/' },
            direct_response: { status: 200, body: { inline_string: '<title>secure</title>' } },
            response_headers_to_add: [
              { header: { key: 'x-protocol', value: '%PROTOCOL%' } },
              { header: { key: 'content-type', value: 'text/html' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' },
            ],
          },
        ],
      },
    ],
  },
};

const REQUESTS = {
  http1: Buffer.from('GET / HTTP/1.1\r\nhost: a\r\n\r\n'),
  http2: Buffer.concat([opening(), request(1, '/')]),
};

/** What the beginning of a response shows. */
function kindOf(bytes: Buffer): string {
  if (bytes.subarray(0, 9).toString('latin1') === 'HTTP/1.1 ') return bytes.subarray(9, 12).toString('latin1');
  // A SETTINGS frame of stream 0.
  return bytes.length > 9 && bytes[3] === 4 ? 'HTTP/2' : bytes.toString('latin1');
}

besideEnvoy('ALPN decides the protocol before the first bytes do, and codec_type before both', async (t, program) => {
  const tls = serverTls([server], { alpn_protocols: ['h2', 'http/1.1', 'other'] });
  const listeners = ['AUTO', 'HTTP1', 'HTTP2'].map((codec) =>
    httpsListener(codec, tls, { ...HELLO, codec_type: codec }),
  );
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners, clusters: [] }) });
  const rows: [codec: string, offered: string | undefined, sent: keyof typeof REQUESTS, found: string][] = [];
  for (const offered of ['h2', 'http/1.1', 'other', 'unknown', undefined]) {
    const isNamed = offered === 'h2' || offered === 'http/1.1' || offered === 'other';
    const isHttp1 = isNamed && offered !== 'h2';
    rows.push(['AUTO', offered, 'http1', offered === 'h2' ? '' : '200']);
    rows.push(['AUTO', offered, 'http2', isHttp1 ? '400' : 'HTTP/2']);
    rows.push(['HTTP1', offered, 'http1', '200'], ['HTTP1', offered, 'http2', '400']);
    rows.push(['HTTP2', offered, 'http1', ''], ['HTTP2', offered, 'http2', 'HTTP/2']);
  }
  for (const [codec, offered, sent, expected] of rows) {
    const port = await baton.listenerPort(codec);
    const socket = await secureConnection(t, port, { ca, ...(offered && { ALPNProtocols: [offered] }) });
    const received: Buffer[] = [];
    const isDone = new Promise<void>((resolve) => {
      socket.on('data', (bytes: Buffer) => {
        received.push(bytes);
        if (expected !== '') resolve();
      });
      socket.on('close', resolve);
    });
    socket.write(REQUESTS[sent]);
    await isDone;
    // Baton says why it closes an HTTP/2 connection, Envoy does not.
    const found = kindOf(Buffer.concat(received));
    t.ok(found === expected || (expected === '' && found === 'HTTP/2'), `${codec}, ${offered}, ${sent}: ${found}`);
    socket.destroy();
  }
  await baton.waitForStats({
    'http.AUTO.downstream_cx_http1_total': 6,
    'http.AUTO.downstream_cx_http2_total': 4,
    'http.AUTO.downstream_cx_protocol_error': 3,
    'http.HTTP1.downstream_cx_http1_total': 10,
    'http.HTTP1.downstream_cx_protocol_error': 5,
    'http.HTTP2.downstream_cx_http2_total': 10,
    'http.HTTP2.downstream_cx_protocol_error': 5,
  });
});

/** Starts a listener that offers both protocols. Returns its port. */
async function startBoth(t: Teardown, program: object, manager: Config, clusters: Config[] = []): Promise<number> {
  const listener = httpsListener('main', serverTls([server], { alpn_protocols: ['h2', 'http/1.1'] }), manager);
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners: [listener], clusters }) });
  return baton.listenerPort('main');
}

function openSecure(t: Teardown, port: number): ClientHttp2Session {
  const session = connect(`https://localhost:${port}`, { ca });
  session.on('error', () => {});
  t.teardown(() => session.destroy());
  return session;
}

besideEnvoy("Node's client sends requests and bodies in parallel over one connection", async (t, program) => {
  const host = await startPlainHost(t, (request, answer) => {
    const hash = createHash('sha256');
    request.on('data', (bytes: Buffer) => hash.update(bytes));
    request.on('end', () => answer.end(`${request.headers['x-forwarded-proto']} ${hash.digest('hex')}`));
  });
  const port = await startBoth(t, program, { route_config: routeAllTo('host') }, [staticCluster('host', host)]);
  const session = openSecure(t, port);
  const bodies = Array.from({ length: 20 }, (_, index) => randomBytes(index * 50_000));
  const answers = await Promise.all(
    bodies.map((body) => exchange(session, '/', { headers: { ':method': 'POST' }, body })),
  );
  for (const [index, { body, status }] of answers.entries()) {
    t.equal(status, 200);
    t.equal(body, `https ${createHash('sha256').update(bodies[index]!).digest('hex')}`);
  }
  t.equal(session.alpnProtocol, 'h2');
});

/** Runs a program to its end. Returns what it prints. */
function run(command: string, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: { ...process.env, ...env } });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
    }
    child.on('error', reject);
    child.on('close', () => resolve(text));
  });
}

t.test('programs choose HTTP/2 by ALPN', async (t) => {
  const port = await startBoth(t, {}, HELLO);
  const caFile = join(tempDir(t), 'ca.pem');
  writeFileSync(caFile, ca);
  const url = `https://localhost:${port}/`;

  const curl = findPeer('curl');
  t.test('curl', { skip: curl.path === undefined ? curl.skip : false }, async (t) => {
    for (const [flag, version] of [
      ['--http2', '2'],
      ['--http1.1', '1.1'],
    ] as const) {
      const args = ['-s', '--cacert', caFile, flag, '-o', '/dev/null', '-w', '%{http_version} %{response_code}', url];
      t.equal(await run(curl.path!, args), `${version} 200`);
    }
  });

  const nghttp = findPeer('nghttp');
  t.test('nghttp', { skip: nghttp.path === undefined ? nghttp.skip : false }, async (t) => {
    const text = await run(nghttp.path!, ['-v', '--no-dep', '-y', url]);
    t.match(text, /negotiated protocol: h2/);
    t.match(text, /:status: 200/);
    t.match(text, /x-protocol: HTTP\/2/);
  });

  const h2load = findPeer('h2load');
  t.test('h2load', { skip: h2load.path === undefined ? h2load.skip : false }, async (t) => {
    const text = await run(h2load.path!, ['-n', '2000', '-c', '8', '-m', '16', url]);
    t.match(text, /Application protocol: h2/);
    t.match(text, /2000 succeeded, 0 failed, 0 errored, 0 timeout/);
  });

  const go = findPeer('go');
  t.test("Go's client", { skip: go.path === undefined ? go.skip : false }, async (t) => {
    const directory = tempDir(t);
    const source = join(directory, 'main.go');
    writeFileSync(source, GO_CLIENT);
    const text = await run(go.path!, ['run', source, caFile, url], { GOFLAGS: '-mod=mod', GO111MODULE: 'off' });
    t.equal(text, 'HTTP/2.0 200\n'.repeat(3));
  });

  const chromium = findPeer('chromium');
  t.test('a browser', { skip: chromium.path === undefined ? chromium.skip : false }, async (t) => {
    const browser = await startBrowser(t, chromium.path!);
    const { page } = await openPage(t, browser, url, { ignoreHTTPSErrors: true });
    t.equal(await page.title(), 'secure');
    const protocol = await page.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol");
    t.equal(protocol, 'h2');
  });
});

const GO_CLIENT = `package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	pem, _ := os.ReadFile(os.Args[1])
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	for i := 0; i < 3; i++ {
		response, err := client.Get(os.Args[2])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		fmt.Println(response.Proto, response.StatusCode)
	}
}
`;
