// Running out of memory for held data is distinguished from data above the limit: the sender could not avoid the former.

import t from 'tap';
import { headerKey } from '../../../src/common/text/header-names.js';
import { DataStatus, HeadersStatus, type HttpFilter } from '../../../src/http/filters/filter.js';
import { FilterPass } from '../../../src/http/filters/filter-pass.js';
import { HeaderBlock } from '../../../src/http/headers/header-block.js';
import { Memory, NO_BLOCK } from '../../../src/io/memory.js';

const LIMIT = 1000;

/** A pass without a next hop that records errors. */
class Pass extends FilterPass {
  wrong = '';

  protected callHeaders(filter: HttpFilter, headers: HeaderBlock, endStream: boolean): HeadersStatus {
    return filter.decodeHeaders!(headers, endStream);
  }
  protected callData(filter: HttpFilter, offset: number, length: number, endStream: boolean): DataStatus {
    return filter.decodeData!(offset, length, endStream);
  }
  protected callTrailers(filter: HttpFilter, trailers: HeaderBlock): HeadersStatus {
    return filter.decodeTrailers!(trailers);
  }
  protected passHeaders(): void {}
  protected passData(): void {}
  protected passTrailers(): void {}
  protected tooLarge(): void {
    this.wrong = 'too large';
  }
  protected noRoom(): void {
    this.wrong = 'no room';
  }
}

/** Holds everything. */
const FILTER: HttpFilter = {
  decodeHeaders: () => HeadersStatus.StopIteration,
  decodeData: () => DataStatus.StopAndBuffer,
  decodeTrailers: () => HeadersStatus.StopIteration,
};

t.test('a held body above the limit is too large', (t) => {
  const { memory, pass } = begin();
  const head = block(memory);
  pass.headers(head, false);
  pass.data(memory.scratch(LIMIT), LIMIT, false);
  t.equal(pass.wrong, '');
  pass.data(memory.scratch(1), 1, true);
  t.equal(pass.wrong, 'too large');
  pass.end();
  head.drop();
  t.equal(memory.retainedBytes(), 0);
  t.end();
});

t.test('header section, body and trailers without memory in the arena are not reported as too large', (t) => {
  for (const part of ['head', 'body', 'trailers']) {
    const { memory, pass } = begin();
    const head = block(memory);
    const trailers = block(memory);
    if (part !== 'head') pass.headers(head, false);
    const taken = fill(memory);
    if (part === 'head') pass.headers(head, true);
    else if (part === 'body') pass.data(memory.scratch(10), 10, true);
    else pass.trailers(trailers);
    t.equal(pass.wrong, 'no room', part);
    pass.end();
    head.drop();
    trailers.drop();
    for (const taking of taken) memory.release(taking);
    t.equal(memory.retainedBytes(), 0);
  }
  t.end();
});

function begin(): { memory: Memory; pass: Pass } {
  const memory = new Memory({ receiveBytes: 65536, scratchBytes: 65536, arenaBytes: 4 * 65536 });
  return { memory, pass: new Pass([FILTER], memory, LIMIT) };
}

function block(memory: Memory): HeaderBlock {
  const headers = new HeaderBlock(memory);
  headers.add(headerKey('x-some'), 'thing');
  return headers;
}

function fill(memory: Memory): number[] {
  const taken: number[] = [];
  for (let got = memory.retain(1); got !== NO_BLOCK; got = memory.retain(1)) taken.push(got);
  return taken;
}
