// Sends requests to the server, and shows on the page when it does not answer.

import { byId, setText } from './dom.js';

const DEADLINE_MS = 60_000;

/** Resolves with the parsed answer of an endpoint. Rejects with an Error whose message is shown to the user. */
export async function getJson<Type>(path: string): Promise<Type> {
  return (await ask(path)).json() as Promise<Type>;
}

/** Resolves with the text of an endpoint, as getJson() does. */
export async function getText(path: string): Promise<string> {
  return (await ask(path)).text();
}

/** Shows a sentence beside the page's title; '' removes it. */
export function showStatus(text: string): void {
  setText(byId('status', HTMLElement), text);
}

async function ask(path: string): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(DEADLINE_MS) });
  } catch (error) {
    throw new Error('The server does not answer.', { cause: error });
  }
  if (response.ok) return response;
  const reason = (await response.text()).trim().slice(0, 200);
  throw new Error(`${path.split('?', 1)[0]}: ${response.status} ${reason}`);
}
