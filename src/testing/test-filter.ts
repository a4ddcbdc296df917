// testFilter(): one request through one filter, without sockets.

import type { HttpFilter } from '../api/index.js';
import type { FilterTest, FilterTestResult } from '../api/testing.js';
import { Memory } from '../io/memory.js';
import { configValue } from '../scripts/config-value.js';
import { definitionOf } from '../scripts/definition.js';
import { Recorded } from './recorded.js';
import { TestStream } from './test-stream.js';

/** Address space: pages are used when they are touched. */
const MEMORY = { receiveBytes: 0, scratchBytes: 1024 * 1024, arenaBytes: 32 * 1024 * 1024 };

/** See src/api/testing.ts. */
export async function testFilter<C>(filter: HttpFilter<C>, test: FilterTest<C> = {}): Promise<FilterTestResult> {
  const definition = definitionOf({ default: filter }, 'http filter');
  const config = configValue(definition.config, test.config);
  const recorded = new Recorded(test, new Memory(MEMORY));
  const result = await new TestStream(test, definition, recorded, config).run();
  const [failure] = recorded.failures;
  if (failure !== undefined && test.failurePolicy === undefined) throw failure.thrown;
  return result;
}
