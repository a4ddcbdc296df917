// The entry point of the reading thread: schema and checks of all extensions stay loaded until it ends.

import { Piscina } from 'piscina';
import { EXTENSIONS } from '../../extensions/index.js';
import { MessageReader } from './message-reader.js';
import type { ReadingResults, ReadingSettings, ReadingTask } from './task.js';

// The named export workerData is empty when a preloaded module (--import) has loaded Piscina first.
const reader = new MessageReader(Piscina.workerData as ReadingSettings, EXTENSIONS);

export default function answer(task: ReadingTask): ReadingResults[ReadingTask['kind']] {
  return reader.answer(task);
}
