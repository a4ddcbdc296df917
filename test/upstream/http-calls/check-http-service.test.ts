// Unsupported settings of an HTTP service are refused with their path.

import t from 'tap';
import type { HeaderValueOption, HttpService } from '../../../src/config/generated/api.js';
import { checkHttpService } from '../../../src/upstream/http-calls/check-http-service.js';
import { httpTarget } from '../../../src/upstream/http-calls/http-uri.js';

function mistakes(service: HttpService): string[] {
  const found: string[] = [];
  checkHttpService(service, 'http_service', (path, message) => found.push(`${path}: ${message}`));
  return found;
}

function withHeader(header: HeaderValueOption): HttpService {
  const uri = { uri: 'http://collector', cluster: 'c', timeout: '1s' };
  return { http_uri: uri, request_headers_to_add: [header] };
}

t.test('a URI determines the Host field and the path', async (t) => {
  t.same(httpTarget('http://collector:4318/v1/metrics?a=%20b'), {
    host: 'collector:4318',
    path: '/v1/metrics?a=%20b',
  });
  t.same(httpTarget('HTTP://[::1]'), { host: '[::1]', path: '/' });
  t.same(httpTarget('https://collector/a'), { host: 'collector', path: '/a' }, 'the cluster decides about TLS');
  t.same(httpTarget('http://collector?a'), { host: 'collector', path: '/?a' });
});

t.test('other URIs are refused', async (t) => {
  for (const uri of ['', 'collector/v1', 'http:///v1', 'http://a b/', 'http://a/b c', 'http://a/#b', 'http://u@a/']) {
    t.match(mistakes({ http_uri: { uri, cluster: 'c', timeout: '1s' } }), [/http_uri\.uri: .* is not a URI/], uri);
  }
  t.match(mistakes({ http_uri: { uri: 'http://a\r\nx: y/', cluster: 'c', timeout: '1s' } }), [/is not a URI/]);
});

t.test('a timeout of 0 and fields that the call sets are refused', async (t) => {
  t.match(mistakes({}), ['http_service: http_uri must be set']);
  t.match(mistakes({ http_uri: { uri: 'http://a', cluster: 'c', timeout: '0s' } }), [/timeout: must be above 0/]);
  t.same(mistakes(withHeader({ header: { key: 'X-Token', value: '100%' } })), [], 'values are not format strings');
  for (const key of ['Content-Length', 'content-type', 'Host', ':path']) {
    t.match(mistakes(withHeader({ header: { key, value: '1' } })), [/request_headers_to_add\[0\]\.header\.key: /], key);
  }
  const both = { header: { key: 'x', value: '1' }, append: true, append_action: 'ADD_IF_ABSENT' } as const;
  t.match(mistakes(withHeader(both)), [/request_headers_to_add\[0\]: append and append_action exclude each other/]);
});
