import t from 'tap';
import { Random } from '../../../../src/common/random.js';
import { REQUEST_ID_BYTES, writeRequestId } from '../../../../src/http/headers/edge/request-id.js';

t.test('ids are unique version-4 UUIDs, and adjacent bytes are not touched', async (t) => {
  const random = new Random(3);
  const bytes = new Uint8Array(REQUEST_ID_BYTES + 2).fill(0x23);
  const seen = new Set<string>();
  const firstDigits = new Set<string>();
  for (let i = 0; i < 10_000; i++) {
    writeRequestId(bytes, 1, random);
    const text = Buffer.from(bytes).toString('latin1');
    if (!/^#[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}#$/.test(text)) t.fail(text);
    seen.add(text);
    firstDigits.add(text[1]!);
  }
  t.equal(seen.size, 10_000);
  t.equal(firstDigits.size, 16);
});
