// The metadata of a route, of a connection and of a request is merged as in Envoy: the most specific value of a field wins.

import t from 'tap';
import { DynamicMetadata } from '../../../../../src/access-log/stream/dynamic-metadata.js';
import { requestMatch } from '../../../../../src/extensions/filters/http/router/request-match.js';
import { MetadataMatch } from '../../../../../src/http/routing/actions/metadata-match.js';

function metadata(fields: Record<string, string>): DynamicMetadata {
  const all = new DynamicMetadata();
  all.set('envoy.lb', fields);
  all.set('other', { v: 'other' });
  return all;
}

t.test('a field of the request replaces that of its connection, which replaces that of the route', async (t) => {
  const route = MetadataMatch.from({ a: 'route', b: 'route', c: 'route' });
  const downstream = { dynamicMetadata: metadata({ b: 'connection', c: 'connection', d: 'connection' }) } as never;
  const dynamicMetadata = metadata({ c: 'request', d: 'request' });
  const texts = (match: MetadataMatch | undefined) => match?.criteria.map(({ name, value }) => `${name}=${value}`);
  t.same(texts(requestMatch(route, { downstream, dynamicMetadata })), [
    'a=route',
    'b=connection',
    'c=request',
    'd=request',
  ]);
  t.same(texts(requestMatch(undefined, { downstream: undefined, dynamicMetadata })), ['c=request', 'd=request']);
  t.equal(requestMatch(route, { downstream: undefined, dynamicMetadata: undefined }), route);
  t.equal(requestMatch(undefined, { downstream: undefined, dynamicMetadata: new DynamicMetadata() }), undefined);
});
