// The order in which the addresses of a host are tried.

import t from 'tap';
import { AddressKind, ipAddress } from '../../../src/io/addresses/address.js';
import { addressOrder, NO_PREFERENCE } from '../../../src/upstream/connections/address-order.js';

const order = (list: string, preference = NO_PREFERENCE) =>
  addressOrder(
    list.split(' ').map((ip) => ipAddress(ip, 80)!),
    preference,
  )
    .map(({ ip }) => ip)
    .join(' ');

t.test('families alternate, beginning with that of the first address', async (t) => {
  t.equal(order('::1 ::2 1.0.0.1 1.0.0.2'), '::1 1.0.0.1 ::2 1.0.0.2');
  t.equal(order('1.0.0.1 ::1 ::2 ::3'), '1.0.0.1 ::1 ::2 ::3');
  t.equal(order('1.0.0.1 1.0.0.2 1.0.0.3'), '1.0.0.1 1.0.0.2 1.0.0.3');
});

t.test('the preferred family is first, as often as configured', async (t) => {
  const v4 = { family: AddressKind.Ip4, count: 2 } as const;
  t.equal(order('::1 1.0.0.1 ::2 1.0.0.2', v4), '1.0.0.1 1.0.0.2 ::1 ::2');
  t.equal(order('::1 ::2 ::3 1.0.0.1', v4), '1.0.0.1 ::1 ::2 ::3');
  t.equal(order('::1 ::2', v4), '::1 ::2');
});
