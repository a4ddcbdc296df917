// Header matchers match like Envoy's, with any number of repeated fields.

import t from 'tap';
import { HeadKind, joinedKinds } from '../../../../src/common/text/joined-names.js';
import type { HeaderMatcher } from '../../../../src/config/generated/api.js';
import { HeaderRule } from '../../../../src/http/routing/matching/header-rule.js';
import { requestHead, responseHead } from '../heads.js';
import { CONDITIONS, VALUES, variants } from './header-answers.js';

const matches = (matcher: HeaderMatcher, ...lines: string[]) =>
  new HeaderRule(matcher, 'matcher').matches(requestHead('GET /', 'x-first: 1', ...lines, 'x-last: 1'));

for (const [name, kind] of [
  ['x-h', 'each'],
  ['user-agent', 'joined'],
] as const) {
  t.test(`fields of ${name} are matched as in Envoy`, async (t) => {
    for (const row of CONDITIONS) {
      variants(name, row).forEach((matcher, variant) => {
        const answers = VALUES.map((values) => {
          const lines = values.map((value) => `${name}: ${value.trim()}`);
          return matches(matcher, ...lines) ? 'Y' : 'n';
        });
        t.equal(answers.join(''), row[kind][variant], JSON.stringify(matcher));
      });
    }
  });
}

t.test('which names are joined to one value depends on the kind of message', async (t) => {
  const rule = new HeaderRule({ name: 'vary', string_match: { exact: 'a,b' } }, '');
  t.equal(rule.matches(requestHead('GET /', 'vary: a', 'vary: b')), false);
  t.equal(rule.matches(responseHead(200, 'vary: a', 'vary: b')), true);
  const status = new HeaderRule({ name: 'grpc-status', string_match: { exact: '0' } }, '');
  t.equal(status.matches(responseHead(200, 'grpc-status: 0', 'grpc-status: 1')), false);
  t.equal(status.matches(responseHead(0, 'grpc-status: 0', 'grpc-status: 1')), false, 'trailers');
  t.equal(status.matches(requestHead('GET /', 'grpc-status: 0', 'grpc-status: 1')), true);
  t.equal(joinedKinds('cookie'), 0);
  t.equal(joinedKinds('via'), HeadKind.Request | HeadKind.Response);
});

t.test('joined values leave no bytes in scratch, however many rules use them', async (t) => {
  const rule = new HeaderRule({ name: 'accept', string_match: { suffix: 'y,z' } }, '');
  const head = requestHead('GET /', `accept: ${'y'.repeat(20_000)}`, 'accept: z');
  for (let i = 0; i < 1000; i++) t.equal(rule.matches(head), true) || t.bailout();
});
