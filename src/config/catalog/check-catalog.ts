// Checks that the messages of extensions exist in the schema. A failure is a mistake of the extension's author.

import { didYouMean } from '../../common/text/suggest.js';
import { messageNameOf } from '../schema/message-name.js';
import type { Schema } from '../schema/schema.js';
import type { Problems } from '../text/problems.js';
import type { ExtensionCatalog } from './extension.js';

/** Reports messages of extensions that the schema does not have, since no configuration could name them. */
export function checkCatalog(catalog: ExtensionCatalog, schema: Schema, problems: Problems): void {
  for (const { name, typeUrls } of catalog.list()) {
    for (const message of typeUrls.map(messageNameOf)) {
      if (schema.message(message)) continue;
      const hint = didYouMean(message, schema.messageNames());
      problems.error([], `the extension '${name}' is configured by '${message}', which no .proto file defines${hint}`);
    }
  }
}
