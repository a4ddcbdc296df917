// Spellings of a path are normalized before any decision depends on it.

import fc from 'fast-check';
import t from 'tap';
import { dropUnderscoredNames, hasUnderscoredNames } from '../../../src/http/normalization/header-underscores.js';
import { type PathConfig, PathNormalizer } from '../../../src/http/normalization/path-normalization.js';
import { runtimeOf } from '../../runtime/values.js';
import { linesOf, requestHead, responseHead, valuesOf } from '../routing/heads.js';

/** Returns the normalized path, or the status of the response. */
function apply(config: PathConfig, path: string): string | number {
  const head = requestHead(`GET ${path}`);
  const reply = PathNormalizer.of(config)!.apply(head);
  return reply === undefined ? head.pathText() : reply.status;
}

t.test('normalize_path resolves dot segments and escapes', async (t) => {
  const cases: [string, string | number][] = [
    ['/', '/'],
    ['/a/b', '/a/b'],
    ['/a/./b', '/a/b'],
    ['/a/../b', '/b'],
    ['/a/..', '/'],
    ['/a/.', '/a/'],
    ['/../../a', '/a'],
    ['/a/b/../../../c', '/c'],
    ['/a/..b', '/a/..b'],
    ['/a/...', '/a/...'],
    ['/a.b/.c', '/a.b/.c'],
    ['/a/%2e%2E/b', '/b'],
    ['/a/.%2e/b', '/b'],
    ['/%2e', '/'],
    ['/a//../b', '/a/b'],
    ['/a\\b\\..\\c', '/a/c'],
    ['/%41%7e%2d', '/A~-'],
    ['/a%2fb%2F..', '/a%2fb%2F..'],
    ['/%c3%A9', '/%c3%A9'],
    ['/a%zz%2', '/a%zz%2'],
    ['/a%00b', 400],
    ['/a"b', '/a%22b'],
    ['/\u00e9', '/%E9'],
    ['/a/../b?c/../d', '/b?c/../d'],
    ['/a?/../b%2e', '/a?/../b%2e'],
  ];
  for (const [path, expected] of cases) t.equal(apply({ normalize_path: true }, path), expected, path);
});

t.test('normalize_path leaves no dot segment, and a second pass changes nothing', async () => {
  const normalize = (path: string) => apply({ normalize_path: true }, path);
  const piece = fc.constantFrom('/', '.', '..', '%2e', '%2E', '\\', 'a', '%41', '%2f', '%', 'é', '//', '%5c');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const once = String(normalize(`/${pieces.join('')}`));
      // A doubly escaped character may only appear once: "%%41" is a stray percent sign before an escape.
      const isStable = normalize(once) === once || pieces.includes('%');
      return isStable && !once.split('/').some((segment) => segment === '.' || segment === '..') && once[0] === '/';
    }),
    { numRuns: 3000 },
  );
});

t.test('merge_slashes merges adjacent slashes', async (t) => {
  t.equal(apply({ merge_slashes: true }, '//a///b//?c//d'), '/a/b/?c//d');
  t.equal(apply({ merge_slashes: true }, '/a/b'), '/a/b');
  t.equal(apply({ merge_slashes: true }, '/a/./b'), '/a/./b', 'dot segments are unaffected');
  t.equal(apply({ merge_slashes: true, normalize_path: true }, '/a/.//../b'), '/a/b');
});

t.test('path_with_escaped_slashes_action keeps, unescapes, redirects or rejects', async (t) => {
  const path = '/a%2Fb%5cc?d%2f';
  t.equal(apply({ path_with_escaped_slashes_action: 'REJECT_REQUEST' }, path), 400);
  t.equal(apply({ path_with_escaped_slashes_action: 'REJECT_REQUEST' }, '/a?b%2f'), '/a?b%2f');
  t.equal(apply({ path_with_escaped_slashes_action: 'UNESCAPE_AND_FORWARD' }, path), '/a/b\\c?d%2f');
  t.equal(
    apply({ path_with_escaped_slashes_action: 'UNESCAPE_AND_FORWARD', normalize_path: true }, '/a%2f..%2fb'),
    '/b',
  );
  t.equal(PathNormalizer.of({ path_with_escaped_slashes_action: 'KEEP_UNCHANGED' }), undefined);
  const head = requestHead(`GET ${path}`);
  const reply = PathNormalizer.of({ path_with_escaped_slashes_action: 'UNESCAPE_AND_REDIRECT' })!.apply(head)!;
  t.equal(reply.status, 307);
  const response = responseHead(307);
  reply.editHeaders!(response);
  t.same(valuesOf(response, 'location'), ['/a/b\\c?d%2f']);
});

t.test('a redirect to an unescaped path keeps the host', async (t) => {
  const normalizer = PathNormalizer.of({ path_with_escaped_slashes_action: 'UNESCAPE_AND_REDIRECT' })!;
  for (const path of ['/%2fother.example/a?b', '//other.example/a%2fb', '/%5cother.example', '/%5c%2fother.example']) {
    const response = responseHead(307);
    normalizer.apply(requestHead(`GET ${path}`))!.editHeaders!(response);
    const url = new URL(valuesOf(response, 'location')[0]!, 'http://own.example/');
    t.equal(url.host, 'own.example', path);
    t.match(url.pathname, /^\/\/+other\.example/, 'the path is that of the request');
  }
});

t.test('runtime selects the treatment of paths where the configuration does not', async (t) => {
  const action = 'http_connection_manager.path_with_escaped_slashes_action';
  const normalizes = (config: PathConfig, values: Record<string, string>) =>
    PathNormalizer.of(config, runtimeOf(values)) !== undefined;
  const normalize = 'http_connection_manager.normalize_path';
  t.ok(normalizes({}, { [normalize]: '100' }));
  t.notOk(normalizes({}, { [normalize]: '20' }));
  t.notOk(normalizes({ normalize_path: false }, { [normalize]: '100' }));
  t.equal(PathNormalizer.of({}, runtimeOf({ [action]: '2' }))!.apply(requestHead('GET /a%2fb'))!.status, 400);
  t.equal(PathNormalizer.of({}, runtimeOf({ [action]: '3' }))!.apply(requestHead('GET /a%2fb'))!.status, 307);
  t.notOk(normalizes({}, { [action]: '9' }));
  t.notOk(normalizes({ path_with_escaped_slashes_action: 'KEEP_UNCHANGED' }, { [action]: '2' }));
  t.notOk(normalizes({ path_with_escaped_slashes_action: 'REJECT_REQUEST' }, { [`${action}_enabled`]: '0' }));
});

t.test('targets that are not paths are unchanged', async (t) => {
  const normalizer = PathNormalizer.of({ normalize_path: true, merge_slashes: true })!;
  for (const start of ['CONNECT a%2e:443', 'OPTIONS *']) {
    const head = requestHead(start);
    t.equal(normalizer.apply(head), undefined);
    t.equal(head.pathText(), start.split(' ')[1]);
  }
});

t.test('headers with underscores can be detected and dropped', async (t) => {
  const head = requestHead('GET /', 'Host: a', 'x_y: 1', 'x-y: 2', 'a_: 3');
  t.equal(hasUnderscoredNames(head), true);
  t.equal(dropUnderscoredNames(head), 2);
  t.same(linesOf(head), ['Host: a', 'x-y: 2']);
  t.equal(hasUnderscoredNames(head), false);
});
