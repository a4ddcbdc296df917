// The examples of RFC 7541, appendix C, and the limits of its formats.

import t from 'tap';
import { DecoderBench } from './bench.js';

const REQUESTS = [
  [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'],
  [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com', 'cache-control: no-cache'],
  [':method: GET', ':scheme: https', ':path: /index.html', ':authority: www.example.com', 'custom-key: custom-value'],
];
const REQUEST_TABLE_BYTES = [57, 110, 164];

const DATES = ['Mon, 21 Oct 2013 20:13:21 GMT', 'Mon, 21 Oct 2013 20:13:22 GMT'];
const RESPONSES = [
  [':status: 302', 'cache-control: private', `date: ${DATES[0]}`, 'location: https://www.example.com'],
  [':status: 307', 'cache-control: private', `date: ${DATES[0]}`, 'location: https://www.example.com'],
  [
    ':status: 200',
    'cache-control: private',
    `date: ${DATES[1]}`,
    'location: https://www.example.com',
    'content-encoding: gzip',
    'set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
  ],
];
const RESPONSE_TABLE_BYTES = [222, 222, 215];

const SERIES = [
  {
    name: 'C.3 requests',
    limit: 4096,
    sizes: REQUEST_TABLE_BYTES,
    lists: REQUESTS,
    blocks: [
      '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      '8286 84be 5808 6e6f 2d63 6163 6865',
      '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
    ],
  },
  {
    name: 'C.4 requests with Huffman codes',
    limit: 4096,
    sizes: REQUEST_TABLE_BYTES,
    lists: REQUESTS,
    blocks: [
      '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
      '8286 84be 5886 a8eb 1064 9cbf',
      '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    ],
  },
  {
    name: 'C.5 responses',
    limit: 256,
    sizes: RESPONSE_TABLE_BYTES,
    lists: RESPONSES,
    blocks: [
      '4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e ' +
        '1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      '4803 3330 37c1 c0bf',
      '88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d ' +
        '4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 ' +
        '7369 6f6e 3d31',
    ],
  },
  {
    name: 'C.6 responses with Huffman codes',
    limit: 256,
    sizes: RESPONSE_TABLE_BYTES,
    lists: RESPONSES,
    blocks: [
      '4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b ' +
        '97c8 e9ae 82ae 43d3',
      '4883 640e ffc1 c0bf',
      '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf ' +
        'cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07',
    ],
  },
];

for (const { name, limit, lists, blocks, sizes } of SERIES) {
  t.test(name, (t) => {
    const bench = new DecoderBench(limit);
    blocks.forEach((block, index) => {
      t.same(bench.decode(block), lists[index], `block ${index + 1}`);
      t.equal(bench.decoder.tableBytes, sizes[index], `table after block ${index + 1}`);
    });
    t.end();
  });
}

t.test('C.2 single fields', (t) => {
  const decode = (block: string) => {
    const bench = new DecoderBench();
    return [bench.decode(block), bench.decoder.tableBytes];
  };
  t.same(decode('400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572'), [
    ['custom-key: custom-header'],
    55,
  ]);
  t.same(decode('040c 2f73 616d 706c 652f 7061 7468'), [[':path: /sample/path'], 0]);
  t.same(decode('1008 7061 7373 776f 7264 0673 6563 7265 74'), [['password: secret'], 0]);
  t.same(decode('82'), [[':method: GET'], 0]);
  t.end();
});

t.test('a block with one of these mistakes is invalid', (t) => {
  const mistakes: [string, string][] = [
    ['80', 'index 0'],
    ['be', 'an index beyond the dynamic table'],
    ['ff', 'an index that is cut off'],
    ['ffff ffff ffff ffff ff7f', 'an index that no table can have'],
    ['ff80 8080 8080 8080 00', 'an index with many leading zeros'],
    ['40', 'a literal without name'],
    ['400161', 'a literal without value'],
    ['40016105', 'a value that is cut off'],
    ['400a61', 'a name that is cut off'],
    ['7f', 'the name of an index that is cut off'],
    ['0081ff 0161', 'padding of eight ones'],
    ['0081 00 0161', 'padding with zeros'],
    ['0085ffffffff ff 0161', 'EOS'],
    ['3fe2 1f', 'a table above the limit'],
    ['82 20', 'an update of the table after a field'],
    ['3f', 'an update that is cut off'],
  ];
  for (const [block, name] of mistakes) t.equal(new DecoderBench().decode(block), undefined, name);
  t.end();
});

t.test('an update resizes the table and evicts what no longer fits', (t) => {
  const bench = new DecoderBench();
  bench.decode('4001 6101 62');
  bench.decode('4001 6301 64');
  t.equal(bench.decoder.tableBytes, 68);
  t.same(bench.decode('3f09 be'), ['c: d'], 'a table of 40 bytes');
  t.equal(bench.decode('bf'), undefined);
  t.same(new DecoderBench().decode('20 3fe1 1f 82'), [':method: GET'], 'two updates');
  t.end();
});

t.test('a lowered limit must be followed by an update', (t) => {
  const silent = new DecoderBench();
  silent.decoder.setLimit(100);
  t.equal(silent.decode('82'), undefined);
  const updated = new DecoderBench();
  updated.decoder.setLimit(100);
  t.same(updated.decode('3f45 82'), [':method: GET']);
  t.same(updated.decode('82'), [':method: GET']);
  t.end();
});

t.test('an entry larger than the table empties it', (t) => {
  const bench = new DecoderBench(64);
  bench.decode('4001 6101 62');
  t.same(bench.decode(`4001 6140 ${'63'.repeat(64)}`), [`a: ${'c'.repeat(64)}`]);
  t.equal(bench.decoder.tableBytes, 0);
  t.end();
});

t.test('names and values are checked, also those of entries', (t) => {
  const bench = new DecoderBench();
  const added = ['4001 4101 62', '4003 783a 7901 62', '4000 0162', '4001 6103 620a 63', '4004 3a66 6f6f 0162'];
  const expected = ['A: b !name', 'x:y: b !name', ': b !name', 'a: b\nc !value', ':foo: b'];
  t.same(
    added.map((block) => bench.decode(block)),
    expected.map((field) => [field]),
  );
  t.same(bench.decode('c2 c1 c0 bf be'), expected, 'by reference');
  t.same(bench.decode('0f 30 0164'), ['a: d'], 'the name of an entry with an invalid value');
  t.end();
});

t.test('a block that is not wanted still changes the table', (t) => {
  const bench = new DecoderBench();
  bench.isFull = true;
  bench.decode(`4001 6101 62 00 0178 7f e918 ${'63'.repeat(3200)} be`);
  bench.isFull = false;
  t.same(bench.decode('be'), ['a: b']);
  t.end();
});
