// The thread that reads resources: schema and checks of all extensions stay loaded while updates come, and go with it.

import { Piscina } from 'piscina';
import { EXTENSIONS } from '../../extensions/index.js';
import { MessageReader } from './message-reader.js';
import type { ReadingResults, ReadingSettings, ReadingTask } from './task.js';

// Its export of that name is empty when something that was preloaded (--import) has loaded it before.
const reader = new MessageReader(Piscina.workerData as ReadingSettings, EXTENSIONS);

export default function answer(task: ReadingTask): ReadingResults[ReadingTask['kind']] {
  return reader.answer(task);
}
