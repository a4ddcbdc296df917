// Buttons of endpoints that change something: they send the request in the background and show the response on the page. Requests
// that affect traffic require a confirmation.

import { byId, el } from '../dom.js';
import { bytesText } from '../numbers.js';

const QUESTIONS: Readonly<Record<string, string>> = {
  quitquitquit: 'The server exits immediately and closes all its connections.',
  drain_listeners: 'Listeners stop accepting connections. They cannot be started again.',
  'healthcheck/fail': 'Health checks of this server fail, and load balancers remove it.',
  reset_counters: 'All counters become 0.',
};

/** Maximum number of characters of a response that are shown. */
const MAX_CHARACTERS = 20_000;

/** Handles all forms of the page with method 'post'. */
export function handleActions(): void {
  for (const form of document.querySelectorAll<HTMLFormElement>("form[method='post']")) {
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void submit(form);
    });
  }
}

async function submit(form: HTMLFormElement): Promise<void> {
  // An endpoint may have a parameter named 'action'.
  const path = form.getAttribute('action')!;
  const question = QUESTIONS[path];
  if (question !== undefined && !(await confirmed(path, question))) return;
  const body = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (typeof value === 'string') body.append(name, value);
  show(path, 'request sent …');
  try {
    const response = await fetch(path, { method: 'POST', body });
    const text = await textOf(response);
    show(path, response.ok ? text : `was refused (${response.status}): ${text}`);
  } catch {
    show(path, 'got no answer.');
  }
}

/** Returns the response's text; a profile is binary, and is described instead. */
async function textOf(response: Response): Promise<string> {
  const isText = response.headers.get('content-type') !== 'application/octet-stream';
  if (isText) return (await response.text()).trim().slice(0, MAX_CHARACTERS);
  return `answered with ${bytesText((await response.blob()).size)} of binary data: see the file admin.profile_path.`;
}

function show(path: string, text: string): void {
  const result = byId('result', HTMLParagraphElement);
  result.replaceChildren(
    el('strong', {}, path),
    text.includes('\n') ? el('span', { class: 'lines' }, text) : ` ${text}`,
  );
  result.hidden = false;
  result.scrollIntoView({ block: 'nearest' });
}

/** Shows a confirmation dialog; Escape means no. */
function confirmed(path: string, question: string): Promise<boolean> {
  const dialog = el(
    'dialog',
    { 'aria-labelledby': 'question-title' },
    el('h2', { id: 'question-title' }, `${path}?`),
    el('p', {}, question),
    el(
      'form',
      { method: 'dialog' },
      el('button', { class: 'button', value: 'no', autofocus: true }, 'Cancel'),
      el('button', { class: 'button danger', value: 'yes' }, 'Go ahead'),
    ),
  );
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    dialog.showModal();
  });
}
