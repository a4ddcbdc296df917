// Reads profiles as profiling tools do.

import { gunzipSync } from 'node:zlib';
import { Profile } from 'pprof-format';

export interface ReadSample {
  /** From the label `thread`. */
  thread: string;
  /** `function file:line`, innermost first. */
  stack: string[];
  /** By the name of the sample type. */
  values: Record<string, number>;
}

export interface ReadProfile {
  /** `name/unit` of each value. */
  types: string[];
  defaultType: string;
  period: number;
  comments: string[];
  samples: ReadSample[];
}

/** Decodes a profile. `bytes`: latin1 text or raw bytes. Throws when they are not a gzipped profile. */
export function readProfile(bytes: string | Uint8Array): ReadProfile {
  const profile = Profile.decode(gunzipSync(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes));
  const text = (index: number | bigint) => profile.stringTable.strings[Number(index)]!;
  const functions = new Map(profile.function.map((each) => [Number(each.id), each]));
  const locations = new Map(profile.location.map((each) => [Number(each.id), each]));
  const frame = (id: number | bigint) => {
    const line = locations.get(Number(id))!.line[0]!;
    const { name, filename } = functions.get(Number(line.functionId))!;
    return `${text(name)} ${text(filename)}:${line.line}`;
  };
  const types = profile.sampleType.map(({ type, unit }) => ({ type: text(type), unit: text(unit) }));
  return {
    types: types.map(({ type, unit }) => `${type}/${unit}`),
    defaultType: text(profile.defaultSampleType),
    period: Number(profile.period),
    comments: profile.comment.map(text),
    samples: profile.sample.map(({ locationId, value, label }) => ({
      thread: label.filter(({ key }) => text(key) === 'thread').map(({ str }) => text(str))[0]!,
      stack: locationId.map(frame),
      values: Object.fromEntries(types.map(({ type }, index) => [type, Number(value[index])])),
    })),
  };
}

/** Returns the threads that have samples, in order. */
export function threadsOf({ samples }: ReadProfile): string[] {
  return [...new Set(samples.map(({ thread }) => thread))].sort();
}

/** Returns the sum of the values that tools show by default. */
export function totalOf({ samples, defaultType }: ReadProfile): number {
  return samples.reduce((sum, { values }) => sum + values[defaultType]!, 0);
}

/** Whether a sample of a matching thread has a frame in a matching file. */
export function hasFrame({ samples }: ReadProfile, thread: RegExp, file: RegExp): boolean {
  return samples.some((sample) => thread.test(sample.thread) && sample.stack.some((frame) => file.test(frame)));
}
