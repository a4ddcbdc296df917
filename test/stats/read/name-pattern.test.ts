import fc from 'fast-check';
import t from 'tap';
import { compileRegex } from '../../../src/common/text/regex.js';
import { namePattern } from '../../../src/stats/read/name-pattern.js';

t.test('a name pattern matches what its expression matches', async (t) => {
  const part = fc.constantFrom(
    'a',
    'ab',
    'b_1',
    '.',
    '\\.',
    '^',
    '$',
    '|',
    '*',
    '?',
    '(a)',
    '[ab]',
    '\\w',
    '\\d',
    '(?i)',
  );
  const pattern = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
  const name = fc.array(fc.constantFrom('a', 'ab', 'b_1', '.', 'A'), { maxLength: 6 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(pattern, name, (pattern, name) => {
      const matches = (make: () => { test(name: string): boolean }) => {
        try {
          return make().test(name);
        } catch {
          return 'invalid';
        }
      };
      const expected = matches(() => compileRegex(pattern));
      t.equal(
        matches(() => ({ test: namePattern(pattern) })),
        expected,
        `${pattern} on ${name}`,
      );
    }),
    { numRuns: 500 },
  );
});
