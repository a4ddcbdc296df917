// What passes between the primary and the thread that reads resources; plain data.

import type { Reach } from '../../config/checks/services/config-sources.js';
import type { FeatureKeys, FeatureNotes } from '../../config/feature-use.js';
import type { LoadCounts } from '../../config/load/load.js';
import type { RegexLimits } from '../../config/regex-limits.js';
import type { UnknownFields } from '../../config/schema/decode.js';
import type { SensitiveValue } from '../../config/schema/sensitive.js';
import type { Problem } from '../../config/text/problem.js';
import type { EncodedResource, FileFault } from '../resource-reader.js';
import type { Parcel } from './parcel.js';

/** The same for all that a process reads. */
export interface ReadingSettings {
  /** --reject-unknown-dynamic-fields, --ignore-unknown-dynamic-fields. */
  readonly unknownFields: UnknownFields;
  /** What is said of deprecated and unfinished fields. */
  readonly features: FeatureNotes;
  readonly featureKeys: FeatureKeys;
  readonly regexLimits: RegexLimits;
  /** `<category>/<name>` of extensions that may not be used. */
  readonly disabledExtensions: readonly string[];
  /** What sources that resources name can be reached by. */
  readonly reach: Reach;
}

/** What the thread is asked to do. `message`: full name of what the resources, or the value, are. */
export type ReadingTask =
  | { readonly kind: 'resources'; readonly message: string; readonly encoded: readonly EncodedResource[] }
  | { readonly kind: 'file'; readonly message: string; readonly path: string }
  | { readonly kind: 'encode'; readonly message: string; readonly value: object };

/** The answers, by the kind of the question. */
export interface ReadingResults {
  readonly resources: ReadingResult;
  readonly file: FileResult;
  readonly encode: Uint8Array;
}

export interface ReadingResult {
  /** One for each resource, in their order. */
  readonly items: readonly ReadItem[];
  readonly warnings: readonly Problem[];
  readonly counts: LoadCounts;
}

/** A file that cannot be read, or one whose content is none. */
export type FileResult =
  | (ReadingResult & { readonly version: string; readonly refusal?: undefined })
  | { readonly refusal: { readonly fault: FileFault; readonly details: string } };

export type ReadItem = UsableItem | RefusedItem | AliveItem;

export interface UsableItem {
  readonly kind: 'usable';
  readonly name: string;
  /** '' when it has none of its own. */
  readonly version: string;
  readonly aliases: readonly string[];
  readonly message: Parcel;
  readonly sensitive: readonly SensitiveValue[];
  /** Undefined when it lives until it is removed. */
  readonly ttlMs: number | undefined;
}

export interface RefusedItem {
  readonly kind: 'refused';
  readonly name: string;
  readonly version: string;
  readonly details: string;
  /** Without what is not to be shown. */
  readonly message: Parcel | undefined;
}

/** No resource: the time to live of one that is there begins anew. */
export interface AliveItem {
  readonly kind: 'alive';
  readonly name: string;
  readonly ttlMs: number;
}
