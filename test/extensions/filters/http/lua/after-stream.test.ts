// What a script has used of a request holds neither the request nor the VM when the request has ended.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { StreamInfo } from '../../../../../src/access-log/stream/stream-info.js';
import { headerKey } from '../../../../../src/common/text/header-names.js';
import { type LuaChainContext, LuaFilter } from '../../../../../src/extensions/filters/http/lua/lua-filter.js';
import { load } from '../../../../../src/extensions/filters/http/lua/script.js';
import type { StreamControl } from '../../../../../src/extensions/sdk.js';
import { HeaderBlock, Method } from '../../../../../src/http/headers/header-block.js';
import { Memory } from '../../../../../src/io/memory.js';
import { waitFor } from '../../../../e2e/harness/wait-for.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const memory = new Memory({ receiveBytes: 4096, scratchBytes: 65536, arenaBytes: 1024 * 1024 });
const context = { memory, filterStats: { increment() {} }, clearsRouteCache: true, filterName: 'lua' };

/** Serves one request with the script. Returns its VM. */
function serve(code: string): WeakRef<object> {
  const script = load(code, { paths: [], sharedId: '' });
  const stream = { info: new StreamInfo(), dropRequestBytes() {}, readRequestBytes: () => Buffer.alloc(0), route() {} };
  const filter = new LuaFilter(
    context as unknown as LuaChainContext,
    stream as unknown as StreamControl,
    script,
    undefined,
  );
  const block = new HeaderBlock(memory);
  block.setMethod(Method.Get, 'GET');
  block.setPath('/');
  block.add(headerKey('host'), 'a');
  filter.decodeHeaders(block, true);
  filter.onDestroy();
  return new WeakRef(script.vm);
}

t.test('the VM of a removed script is freed', async (t) => {
  for (const body of [
    'h:headers():get("a")',
    'h:streamInfo():dynamicMetadata():set("a", "b", "c")',
    'h:body(true):length()',
    'h:bodyChunks()',
    'h:connection() h:streamInfo():filterState() h:metadata()',
    'kept = { h, h:headers(), h:streamInfo(), h:bodyChunks(), h:body(true) }',
  ]) {
    const vm = serve(`function envoy_on_request(h) ${body} end`);
    await waitFor(
      () => {
        collect();
        return vm.deref() === undefined;
      },
      { what: `the end of the VM of ${body}` },
    );
    t.pass(body);
  }
});
