// The list of endpoints that /help prints, also used as the answer for unknown paths.

import type { AdminHandler } from './admin-handler.js';

/** Returns the list; `handlers` in the order of listing. */
export function helpText(handlers: readonly AdminHandler[]): string {
  let text = 'admin commands are:\n';
  for (const { path, mutates, help, parameters } of handlers) {
    text += `  ${path}${mutates ? ' (POST)' : ''}: ${help}\n`;
    for (const { name, help, choices } of parameters) {
      text += `      ${name}: ${help}${choices === undefined ? '' : `; One of (${choices.join(', ')})`}\n`;
    }
  }
  return text;
}
