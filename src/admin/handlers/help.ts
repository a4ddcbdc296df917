// GET /help: every endpoint with its parameters.

import type { AdminHandler } from '../admin-handler.js';
import { helpText } from '../help-text.js';

export const help: AdminHandler = {
  path: '/help',
  mutates: false,
  help: 'print out list of admin commands',
  parameters: [],
  handle: ({ handlers }) => ({ body: helpText(handlers) }),
};
