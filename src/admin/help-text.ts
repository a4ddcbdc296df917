// The list of endpoints as /help prints it, and as a path that does not exist is answered.

import type { AdminHandler } from './admin-handler.js';

/** `handlers` in the order in which they are to be listed. */
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
