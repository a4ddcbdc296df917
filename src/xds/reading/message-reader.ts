// The work of the reading thread: converts bytes and files to messages in canonical form, checked like a static configuration.

import { createRequire } from 'node:module';
import type { Root } from 'protobufjs';
import type * as ProtoJson from 'protobufjs/ext/protojson.js';
import type protobufjs from 'protobufjs/light.js';
import { messageOf } from '../../common/errors/errors.js';
import { type Extension, ExtensionCatalog } from '../../config/catalog/extension.js';
import { type ProtoLibrary, readBinary } from '../../config/forms/binary-proto.js';
import { type FileSourceResult, readFileSource, readJsonSource } from '../../config/forms/file-source.js';
import { encodeJson, loadAllMessages } from '../../config/schema/messages.js';
import { loadSchema } from '../../config/schema/schema.js';
import { formatProblems } from '../../config/text/problem.js';
import { Envelope } from './envelope.js';
import { RESOURCE_WRAPPER, ResourceCheck } from './resource-check.js';
import type { FileResult, ReadItem, ReadingResult, ReadingResults, ReadingSettings, ReadingTask } from './task.js';

const RESPONSE = 'envoy.service.discovery.v3.DiscoveryResponse';

/** In a file only the resource itself has its name. */
const UNKNOWN = { name: '', version: '', aliases: [] };

const ONLY_ALIVE = "'resource' is missing: a time to live alone is for resources that were sent before";

export class MessageReader {
  readonly #settings: ReadingSettings;
  readonly #catalog: ExtensionCatalog;
  /** Created by the first message in binary form. */
  #proto: { readonly root: Root; readonly library: ProtoLibrary } | undefined;

  constructor(settings: ReadingSettings, extensions: readonly Extension[]) {
    this.#settings = settings;
    this.#catalog = new ExtensionCatalog(extensions, settings.disabledExtensions);
  }

  answer(task: ReadingTask): ReadingResults[ReadingTask['kind']] {
    switch (task.kind) {
      case 'resources':
        return this.#resources(task);
      case 'file':
        return this.#response(task.message, readFileSource(task.path, RESPONSE));
      case 'text':
        return this.#response(task.message, readJsonSource(task.name, task.json));
      case 'encode':
        return encodeJson(this.#binary.root.lookupType(task.message), task.value);
    }
  }

  #resources({ message, encoded }: Extract<ReadingTask, { kind: 'resources' }>): ReadingResult {
    const check = this.#check(message);
    const items = encoded.map(({ name, version, aliases, typeUrl, value }): ReadItem => {
      const known = { name, version, aliases };
      const expected = typeUrl.endsWith(`/${RESOURCE_WRAPPER}`) ? RESOURCE_WRAPPER : message;
      const refusal = check.refusalOfType(typeUrl, expected);
      if (refusal !== undefined) return check.refused(known, refusal);
      try {
        const { library, root } = this.#binary;
        const { value: raw, unknownFields } = readBinary(library, root, expected, value);
        const source = { name: '', value: raw, size: value.length, unknownFields, locate: () => undefined };
        return check.read({ ...(raw as object), '@type': typeUrl }, source, [], known);
      } catch (error) {
        return check.refused(known, `unable to read it as a binary protobuf of ${expected}: ${messageOf(error)}`);
      }
    });
    return { items, ...check.found };
  }

  /** Reads a DiscoveryResponse whose resources are these messages. */
  #response(message: string, { source, problems, isUnreadable = false }: FileSourceResult): FileResult {
    if (source === undefined || problems.length > 0) {
      return { refusal: { fault: isUnreadable ? 'unreadable' : 'garbled', details: formatProblems(problems) } };
    }
    const check = this.#check(message);
    const envelope = new Envelope(source, check);
    if (envelope.refusal !== undefined) return { refusal: envelope.refusal };
    const items = envelope.resources.map((raw, index) => {
      const item = check.read(raw, source, envelope.pathOf(index), UNKNOWN);
      return item.kind === 'alive' ? check.refused({ ...UNKNOWN, name: item.name }, ONLY_ALIVE) : item;
    });
    return { version: envelope.version, items, ...check.found };
  }

  #check(message: string): ResourceCheck {
    return new ResourceCheck(loadSchema(), this.#catalog, this.#settings, message);
  }

  get #binary(): { readonly root: Root; readonly library: ProtoLibrary } {
    if (this.#proto === undefined) {
      const require = createRequire(import.meta.url);
      const { Reader } = require('protobufjs/light.js') as typeof protobufjs;
      const { toJson } = require('protobufjs/ext/protojson.js') as typeof ProtoJson;
      this.#proto = { root: loadAllMessages(), library: { Reader, toJson } };
    }
    return this.#proto;
  }
}
