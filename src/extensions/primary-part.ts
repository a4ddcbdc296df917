// What an extension has on the primary, made and closed so that a mistake in it is told with its name, and keeps nothing else from closing.

import { callExtension } from '../common/errors/defects.js';
import { shownName } from '../common/text/shown.js';
import type { Any } from '../config/generated/api.js';
import { getLogger } from '../log/logger.js';
import type { HttpFilterExtension, PrimaryFilterContext, PrimaryPart } from './factories.js';

const logger = getLogger('filter');

/** The part of an HTTP filter. Throws what createOnPrimary() throws, a BatonError as it is. */
export function createPart(
  extension: HttpFilterExtension,
  config: Any,
  context: PrimaryFilterContext,
): PrimaryPart | undefined {
  const part = callExtension('createOnPrimary', extension.name, () => extension.createOnPrimary?.(config, context));
  if (part === undefined) return undefined;
  return {
    close: () => closePart(part, extension.name),
    prepareRoutes: (routes) => part.prepareRoutes?.(routes) ?? (() => {}),
  };
}

/** Closes a part of the extension of that name; what it throws is logged. */
export function closePart(part: PrimaryPart, name: string): void {
  try {
    part.close();
  } catch (error) {
    logger.error({ err: error }, `close() of what '${shownName(name)}' has on the primary failed`);
  }
}
