// A DiscoveryResponse in a file: what stands around its resources.

import { isRecord } from '../../common/records.js';
import { describe } from '../../config/schema/scalar.js';
import type { Path } from '../../config/text/path.js';
import { formatProblems } from '../../config/text/problem.js';
import type { Source } from '../../config/text/source.js';
import type { FileFault } from '../resource-reader.js';
import type { ResourceCheck } from './resource-check.js';

const RESPONSE = 'envoy.service.discovery.v3.DiscoveryResponse';

export class Envelope {
  readonly version: string;
  readonly resources: readonly unknown[];
  /** What is wrong with the file as a whole. */
  readonly refusal: { readonly fault: FileFault; readonly details: string } | undefined;
  /** A single element stands for a list of it here too. */
  readonly #isSingle: boolean;

  constructor(source: Source, check: ResourceCheck) {
    const { value } = source;
    const isMap = isRecord(value);
    const { resources = [], ...rest } = (isMap ? value : {}) as { readonly resources?: unknown };
    const { message, problems } = check.decode(RESPONSE, isMap ? rest : value, source, []);
    // A file that somebody begins to write is empty first, and a name may be mistyped: neither is to remove everything. Binary
    // forms have no way to write an empty list.
    const isText = () => source.locate([], 'value') !== undefined;
    if (!isMap ? value === null : Object.keys(value).length === 0) {
      problems.error([], "it is empty; where there are no resources, it says 'resources: []'");
    } else if (isMap && !('resources' in value) && isText()) {
      problems.error([], "it has no 'resources'; where there are none, it says 'resources: []'");
    }
    if (typeof resources !== 'object') {
      problems.error(['resources'], `expected a list, found ${describe(resources)}`);
    }
    this.version = String(message['version_info'] ?? '');
    this.#isSingle = isRecord(resources);
    this.resources = this.#isSingle ? [resources] : Array.isArray(resources) ? resources : [];
    const fault = isMap ? 'refused' : 'garbled';
    this.refusal = problems.errorCount === 0 ? undefined : { fault, details: formatProblems(problems.errors) };
  }

  /** Where a resource stands in the file. */
  pathOf(index: number): Path {
    return this.#isSingle ? ['resources'] : ['resources', index];
  }
}
