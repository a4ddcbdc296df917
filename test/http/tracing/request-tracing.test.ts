// A tracer that fails does not affect requests, and decorators are values of headers.

import t from 'tap';
import { StreamInfo } from '../../../src/access-log/stream/stream-info.js';
import { Random } from '../../../src/common/random.js';
import { requestIdRules } from '../../../src/http/headers/edge/request-id-rules.js';
import { HeaderBlock } from '../../../src/http/headers/header-block.js';
import { RequestTracing } from '../../../src/http/tracing/request-tracing.js';
import { compileRouteTracing } from '../../../src/http/tracing/route-tracing.js';
import { Side, type Span, type Tracer } from '../../../src/http/tracing/tracer.js';
import { Memory } from '../../../src/io/memory.js';
import { Runtime } from '../../../src/runtime/runtime.js';

function fail(): never {
  throw new Error('it sticks');
}

const SPAN: Span = {
  ...{ isSampled: true, traceId: '', spanId: '', setOperation() {}, setTag() {}, log() {}, inject() {}, drop() {} },
  child: () => SPAN,
  finish: fail,
};

t.test('what a tracer throws at the end of a span and at its own end is reported', (t) => {
  const errors: unknown[] = [];
  const tracer: Tracer = { start: () => SPAN, close: fail };
  const tracing = new RequestTracing(
    {},
    {
      ...{ tracer, side: Side.Ingress, requestIds: requestIdRules(undefined), node: '', zone: '' },
      ...{ runtime: new Runtime(), random: new Random(1), failed: (error) => errors.push(error) },
    },
  );
  const memory = new Memory({ receiveBytes: 65536, scratchBytes: 65536, arenaBytes: 4 * 1024 * 1024 });
  const info = new StreamInfo();
  const trace = tracing.begin(new HeaderBlock(memory), info, undefined)!;
  trace.finishTry(trace.beginTry('c', 1, 0), info, 200, 0, 1);
  trace.finish(info, false, 1);
  tracing.close();
  t.match(errors, [{ message: 'it sticks' }, { message: 'it sticks' }, { message: 'it sticks' }]);
  t.end();
});

t.test('the operation of a decorator is one line', (t) => {
  const compile = (operation: string) => compileRouteTracing({ decorator: { operation } }, 'routes[0]', new Runtime());
  t.match(compile('a b'), { decorator: { operation: 'a b', isPropagated: true } });
  for (const text of ['a\nb', 'a\r', '\0'])
    t.throws(() => compile(text), { where: 'routes[0].decorator.operation', message: /line break/ });
  t.end();
});
