// Headers of the PROXY protocol are valid for clients of every kind of address.

import t from 'tap';
import { INTERNAL_CLIENT } from '../../../src/io/addresses/address.js';
import { localProxyHeader, proxyHeader } from '../../../src/upstream/connections/proxy-header.js';

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');

t.test('a client within the process is unknown to the host', (t) => {
  const client = { remoteText: INTERNAL_CLIENT, localText: 'envoy://inner/' };
  t.equal(text(proxyHeader('V1', client)), 'PROXY UNKNOWN\r\n');
  t.equal(text(localProxyHeader('V1', () => client)), 'PROXY UNKNOWN\r\n');
  t.same(proxyHeader('V2', client).subarray(12), [0x20, 0, 0, 0]);
  t.end();
});

t.test('a client at an IP address is named, unless its destination has none', (t) => {
  const remoteText = '192.0.2.1:5';
  t.equal(
    text(proxyHeader('V1', { remoteText, localText: '192.0.2.2:80' })),
    'PROXY TCP4 192.0.2.1 192.0.2.2 5 80\r\n',
  );
  t.equal(text(proxyHeader('V1', { remoteText, localText: 'envoy://inner/' })), 'PROXY UNKNOWN\r\n');
  t.end();
});
