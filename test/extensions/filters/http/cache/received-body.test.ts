// A response that is being received takes as much memory as its bytes, however small the pieces are that its host sends.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { StreamInfo } from '../../../../../src/access-log/stream/stream-info.js';
import { headerKey } from '../../../../../src/common/text/header-names.js';
import { type CacheContext, CacheFilter } from '../../../../../src/extensions/filters/http/cache/cache-filter.js';
import { ResponseStore } from '../../../../../src/extensions/filters/http/cache/store.js';
import { VaryRules } from '../../../../../src/extensions/filters/http/cache/vary.js';
import type { LocalReply, StreamControl } from '../../../../../src/extensions/sdk.js';
import { HeaderBlock, Method } from '../../../../../src/http/headers/header-block.js';
import { Memory } from '../../../../../src/io/memory.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const PIECES = 200_000;
const MAX_BYTES = 4 * 1024 * 1024;

const memory = new Memory({ receiveBytes: 4096, scratchBytes: 65536, arenaBytes: 1024 * 1024 });
const context: CacheContext = {
  clock: { monotonicMs: 0, realtimeMs: 0 } as CacheContext['clock'],
  memory,
  store: new ResponseStore(),
  vary: new VaryRules({}),
  keyPrefix: '',
  maxBodyBytes: MAX_BYTES,
  bufferLimit: MAX_BYTES,
  ignoresRequestDirectives: false,
};

function request(): HeaderBlock {
  const block = new HeaderBlock(memory);
  block.setMethod(Method.Get, 'GET');
  block.setPath('/');
  block.scheme = 'http';
  block.add(headerKey('host'), 'a');
  return block;
}

function usedBytes(): number {
  collect();
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
}

t.test('a body of many small pieces', async (t) => {
  context.store.addUser();
  const replies: LocalReply[] = [];
  const stream = {
    info: new StreamInfo(),
    route: () => ({ clusterName: 'host' }),
    sendLocalReply: (reply: LocalReply) => void replies.push(reply),
  } as unknown as StreamControl;
  const filter = new CacheFilter(context, stream);
  filter.decodeHeaders(request(), true);
  const response = new HeaderBlock(memory);
  response.setStatus(200);
  response.add(headerKey('cache-control'), 'max-age=100');
  filter.encodeHeaders(response, false);
  const offset = memory.scratch(1);
  const before = usedBytes();
  for (let index = 0; index < PIECES; index++) {
    memory.bytes[offset] = index % 251;
    filter.encodeData(offset, 1, false);
  }
  t.ok(usedBytes() - before < MAX_BYTES, 'it takes no more than a whole response may');
  filter.encodeData(offset, 0, true);
  filter.onDestroy();

  new CacheFilter(context, stream).decodeHeaders(request(), true);
  const body = replies[0]!.body as Uint8Array;
  t.equal(body.length, PIECES);
  t.ok(
    body.every((byte, index) => byte === index % 251),
    'the stored body is the received one',
  );
});
