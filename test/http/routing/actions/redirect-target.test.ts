// The targets of hosts' redirects.

import t from 'tap';
import { redirectTarget } from '../../../../src/http/routing/actions/redirect-target.js';

t.test('an absolute URL is a target, without its fragment and credentials', async (t) => {
  for (const [location, authority, path, isHttps] of [
    ['http://a', 'a', '/', false],
    ['HTTPS://a.example:8443/b?c#d', 'a.example:8443', '/b?c', true],
    ['http://a?b', 'a', '/?b', false],
    ['http://[::1]:80/x', '[::1]:80', '/x', false],
    ['http://user:secret@a/x@y', 'a', '/x@y', false],
    ['ftp://a/b', 'a', '/b', false],
  ] as const) {
    t.strictSame(redirectTarget(location), { authority, path, isHttps }, location);
  }
});

t.test('anything else is not a redirect target', async (t) => {
  const attacks = [
    ...['', '/a', 'a', '//a/b', 'http:/a', '://a', 'http://', 'http:///a', '1http://a', 'ht tp://a', 'http://a b/'],
    ...[
      'http://a/b c',
      'http://a/\0',
      'http://a/\x7f',
      'http://a\r\nx: y/',
      'http://a/\r\nx: y',
      'http://[::1/',
      'http://a:b/',
    ],
    ...['http://a:123456/', 'http://user@/', 'http://\x80/', `${'a'.repeat(60_000)}`, `http://${'@'.repeat(60_000)}`],
  ];
  for (const location of attacks) t.equal(redirectTarget(location), undefined, JSON.stringify(location.slice(0, 40)));
});
