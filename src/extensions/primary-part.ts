// Creates and closes the primary parts of extensions. An error names the extension, and an error on close does not affect other
// parts.

import { callExtension } from '../common/errors/defects.js';
import { shownName } from '../common/text/shown.js';
import type { Any } from '../config/generated/api.js';
import { getLogger } from '../log/logger.js';
import type { HttpChain, HttpFilterExtension, PrimaryFilterContext, PrimaryPart } from './factories.js';

const logger = getLogger('filter');

/** Creates the primary part of an HTTP filter, if it has one. Throws what createOnPrimary() throws, with the extension's name. */
export function createPart(
  extension: HttpFilterExtension,
  config: Any,
  context: PrimaryFilterContext,
  chain: HttpChain,
): PrimaryPart | undefined {
  const secrets = useSecrets(extension, config, context);
  let part: PrimaryPart | undefined;
  try {
    part = callExtension('createOnPrimary', extension.name, () => extension.createOnPrimary?.(config, context, chain));
  } catch (error) {
    secrets?.close();
    throw error;
  }
  if (part === undefined) return secrets;
  const own = part;
  return {
    close: () => {
      closePart(own, extension.name);
      secrets?.close();
    },
    prepareRoutes: (routes) => own.prepareRoutes?.(routes) ?? (() => {}),
  };
}

/** Makes the secrets that the configuration names available to workers. */
function useSecrets(extension: HttpFilterExtension, config: Any, context: PrimaryFilterContext) {
  if (extension.secrets === undefined) return undefined;
  const named = callExtension('secrets', extension.name, () => [...extension.secrets!(config)]);
  return named.length === 0 ? undefined : context.secrets.use(named, context.waitFor);
}

/** Closes a part of the extension `name`; logs what it throws. */
export function closePart(part: PrimaryPart, name: string): void {
  try {
    part.close();
  } catch (error) {
    logger.error({ err: error }, `close() of the primary part of '${shownName(name)}' failed`);
  }
}
