// "Did you mean": near names are suggested, distant ones are not.

import t from 'tap';
import { didYouMean, nearest } from '../../../src/common/text/suggest.js';

const NAMES = ['address', 'access_log', 'connect_timeout', 'lb_policy'];

t.test('a mistyped name is found', async (t) => {
  t.equal(nearest('adress', NAMES), 'address');
  t.equal(nearest('addrses', NAMES), 'address');
  t.equal(nearest('accessLog', NAMES), 'access_log');
  t.equal(nearest('conect-timeout', NAMES), 'connect_timeout');
  t.equal(didYouMean('lb_polcy', NAMES), "; did you mean 'lb_policy'?");
});

t.test('a name without a near candidate finds nothing', async (t) => {
  t.equal(nearest('x', NAMES), undefined);
  t.equal(nearest('retries', NAMES), undefined);
  t.equal(didYouMean('', NAMES), '');
});
