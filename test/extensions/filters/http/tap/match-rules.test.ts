// Match predicates of taps: the verdict changes from unknown as soon as it is certain, and not before.

import fc from 'fast-check';
import t from 'tap';
import type { MatcherMatchPredicate } from '../../../../../src/config/generated/api.js';
import { BodySearch } from '../../../../../src/extensions/filters/http/tap/matching/body-search.js';
import {
  MatchRules,
  type MatchState,
  Part,
  Truth,
} from '../../../../../src/extensions/filters/http/tap/matching/match-rules.js';
import { requestHead, responseHead } from '../../../../http/routing/heads.js';

const NAMES = { [Truth.False]: 'no', [Truth.True]: 'yes', [Truth.Unknown]: 'unknown' };

/** The verdict after each step of POST /a with the body `hello world`, answered with 404 and `gone`. */
function verdicts(match: MatcherMatchPredicate): string {
  const state = new MatchRules({ match }).begin();
  const steps: ((state: MatchState) => void)[] = [
    (state) => state.onHeaders(Part.RequestHeaders, requestHead('POST /a', 'Host: a', 'X-Kind: odd')),
    (state) => state.onBody(Part.RequestBody, Buffer.from('hello w')),
    (state) => state.onBody(Part.RequestBody, Buffer.from('orld')),
    (state) => {
      state.onEnd(Part.RequestBody);
      state.onEnd(Part.RequestTrailers);
    },
    (state) => state.onHeaders(Part.ResponseHeaders, responseHead(404)),
    (state) => state.onBody(Part.ResponseBody, Buffer.from('gone')),
    (state) => {
      state.onEnd(Part.ResponseBody);
      state.onHeaders(Part.ResponseTrailers, responseHead(0, 'X-End: yes'));
    },
  ];
  return steps
    .map((step) => {
      step(state);
      return NAMES[state.verdict];
    })
    .join(' ');
}

const header = (name: string, exact: string) => ({ headers: [{ name, string_match: { exact } }] });
const path = (exact: string): MatcherMatchPredicate => ({ http_request_headers_match: header(':path', exact) });
const status = (exact: string): MatcherMatchPredicate => ({ http_response_headers_match: header(':status', exact) });
const requestBody = (bytes_limit: number, ...texts: string[]): MatcherMatchPredicate => ({
  http_request_generic_body_match: { bytes_limit, patterns: texts.map((string_match) => ({ string_match })) },
});

const U = 'unknown';
const cases: [string, MatcherMatchPredicate, string][] = [
  ['everything', { any_match: true }, 'yes yes yes yes yes yes yes'],
  ['a request header', path('/a'), 'yes yes yes yes yes yes yes'],
  ['another request header', path('/b'), 'no no no no no no no'],
  ['not a request header', { not_match: path('/a') }, 'no no no no no no no'],
  ['a response header', status('404'), `${U} ${U} ${U} ${U} yes yes yes`],
  ['not a response header', { not_match: status('200') }, `${U} ${U} ${U} ${U} yes yes yes`],
  ['a text across pieces', requestBody(0, 'lo wo'), `${U} ${U} yes yes yes yes yes`],
  ['two texts', requestBody(0, 'hell', 'rld'), `${U} ${U} yes yes yes yes yes`],
  ['a text that does not occur', requestBody(0, 'hell', 'none'), `${U} ${U} ${U} no no no no`],
  ['a text beyond the limit', requestBody(9, 'world'), `${U} ${U} no no no no no`],
  [
    'bytes',
    { http_response_generic_body_match: { patterns: [{ binary_match: Buffer.from('one').toString('base64') }] } },
    `${U} ${U} ${U} ${U} ${U} yes yes`,
  ],
  ['trailers that are absent', { http_request_trailers_match: header('x-end', 'yes') }, `${U} ${U} ${U} no no no no`],
  ['trailers', { http_response_trailers_match: header('x-end', 'yes') }, `${U} ${U} ${U} ${U} ${U} ${U} yes`],
  ['one is enough', { or_match: { rules: [status('200'), path('/a')] } }, 'yes yes yes yes yes yes yes'],
  ['one fails', { and_match: { rules: [status('404'), path('/b')] } }, 'no no no no no no no'],
  ['both', { and_match: { rules: [status('404'), path('/a')] } }, `${U} ${U} ${U} ${U} yes yes yes`],
  ['either', { or_match: { rules: [status('200'), requestBody(0, 'none')] } }, `${U} ${U} ${U} ${U} no no no`],
];

for (const [what, match, expected] of cases) t.equal(verdicts(match), expected, what);

t.test('the result of a body search does not depend on the pieces', async () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 20 });
  const patterns = fc.array(fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 5 }), {
    minLength: 1,
  });
  fc.assert(
    fc.property(fc.array(letters), patterns, fc.nat(30), (pieces, texts, limit) => {
      const search = new BodySearch(
        texts.map((text) => Buffer.from(text)),
        limit,
      );
      for (const piece of pieces) search.add(Buffer.from(piece));
      const body = pieces.join('').slice(0, limit === 0 ? undefined : limit);
      return search.isFound === texts.every((text) => body.includes(text));
    }),
  );
});
