// The code of the thread that checks one message.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../common/errors/errors.js';
import { type Extension, ExtensionCatalog } from '../catalog/extension.js';
import { Checker } from '../check.js';
import { FeatureUse } from '../feature-use.js';
import { implementedBy } from '../implemented/index.js';
import { Decoder } from '../schema/decode.js';
import { loadSchema } from '../schema/schema.js';
import { formatProblems, type Problem } from '../text/problem.js';
import { Problems } from '../text/problems.js';
import { readYaml } from '../text/read-text.js';
import type { CheckedMessage, MessageToCheck } from './check-in-thread.js';

/** Checks the message and posts the result. */
export function runMessageThread(extensions: readonly Extension[]): void {
  if (isMainThread || !parentPort) throw new Error('runMessageThread runs in a thread that checkInThread starts');
  parentPort.postMessage(answer(workerData as MessageToCheck, extensions));
}

/** Name of the text in messages. */
const SOURCE = 'body';

/** How many values aliases may add to those in the text. */
const MAX_EXPANSION = 10_000;

function answer({ name, text }: MessageToCheck, extensions: readonly Extension[]): CheckedMessage {
  try {
    return check(name, text, extensions);
  } catch (error) {
    if (error instanceof RangeError) return { ok: false, reason: `the body cannot be read: ${messageOf(error)}` };
    throw error;
  }
}

function check(name: string, text: string, extensions: readonly Extension[]): CheckedMessage {
  const { source, problems: mistakes } = readYaml(SOURCE, text);
  if (source === undefined || mistakes.length > 0) return refused(mistakes);
  const schema = loadSchema();
  const problems = new Problems([source]);
  const message = new Decoder(schema, problems, 'refuse', source.size + MAX_EXPANSION).decode(name, source.value ?? {});
  const features = new FeatureUse(problems, new Map(), 'unfinished');
  new Checker(schema, new ExtensionCatalog(extensions), implementedBy(extensions), problems, features).check(
    name,
    message,
  );
  return problems.errorCount > 0 ? refused(problems.errors) : { ok: true, message };
}

function refused(problems: readonly Problem[]): CheckedMessage {
  return { ok: false, reason: formatProblems(problems) };
}
