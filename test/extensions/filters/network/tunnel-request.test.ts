// The head of a tunnel's request: names that clients determine cannot change it, and mistakes are reported at their places.

import t from 'tap';
import { StreamInfo } from '../../../../src/access-log/stream/stream-info.js';
import { type BatonError, Mistakes } from '../../../../src/common/errors/errors.js';
import { TunnelRequest } from '../../../../src/extensions/filters/network/tcp-proxy/tunnel-request.js';

function hostname(config: string, requestedHost = ''): string | undefined {
  const info = new StreamInfo();
  info.reset(0, 0);
  info.ownDynamicMetadata().set('a', { b: requestedHost });
  return new TunnelRequest({ hostname: config }).hostname(info);
}

t.test('hostnames are authorities', async (t) => {
  for (const name of ['a', 'a.b:443', '[::1]:80', '127.0.0.1:1']) t.equal(hostname(name), name);
  t.equal(hostname('%DYNAMIC_METADATA(a:b)%:1', 'c'), 'c:1');
});

t.test('a name that would change the request gives none', async (t) => {
  for (const name of ['a b', 'a\r\nx: y', 'a/b', 'a?b', 'a#b', 'u@a', 'a\0', '\u00e4', 'a'.repeat(1025)])
    t.equal(hostname('%DYNAMIC_METADATA(a:b)%', name), undefined, JSON.stringify(name.slice(0, 20)));
});

t.test('mistakes have a place', async (t) => {
  t.equal(mistakeOf({ hostname: '%NOPE%' }), 'hostname');
  t.equal(mistakeOf({ post_path: '/a' }), 'post_path');
  t.equal(mistakeOf({ use_post: true, post_path: 'a b' }), 'post_path');
  t.equal(mistakeOf({ headers_to_add: [{ header: { key: 'host', value: 'a' } }] }), 'headers_to_add[0].header.key');
  t.equal(mistakeOf({ request_id_extension: {}, request_id_header: 'a b' }), 'request_id_header');
});

function mistakeOf(config: object): string | undefined {
  try {
    new TunnelRequest({ hostname: 'a', ...config });
    return undefined;
  } catch (error) {
    return (Mistakes.of(error)[0] as BatonError).where;
  }
}
