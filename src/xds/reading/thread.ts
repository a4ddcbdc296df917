// The thread that reads resources: schema and checks of all extensions stay loaded while updates come, and go with it.

import { workerData } from 'piscina';
import { EXTENSIONS } from '../../extensions/index.js';
import { MessageReader } from './message-reader.js';
import type { ReadingResults, ReadingSettings, ReadingTask } from './task.js';

const reader = new MessageReader(workerData as ReadingSettings, EXTENSIONS);

export default function answer(task: ReadingTask): ReadingResults[ReadingTask['kind']] {
  return reader.answer(task);
}
