// Fields for /runtime_modify, whose parameters are named by the keys to set: an HTML form without a script cannot express
// this.

import { el } from '../dom.js';

/** Adds fields for a key and its value below the endpoint's row, if there is one. */
export function addRuntimeFields(): void {
  const form = document.getElementById('runtime_modify');
  if (!(form instanceof HTMLFormElement)) return;
  const key = field('key', 'Key to set; the form sets one key at a time');
  const value = field('value', 'Its value; an empty value removes the override');
  form.closest('tr')!.after(key.row, value.row);
  form.addEventListener('formdata', ({ formData }) => {
    if (key.input.value !== '') formData.append(key.input.value, value.input.value);
  });
}

function field(name: string, help: string) {
  const id = `param-runtime_modify-${name}`;
  const input = el('input', { type: 'text', id, form: 'runtime_modify', spellcheck: 'false', placeholder: name });
  const label = el('label', { for: id }, help);
  return { input, row: el('tr', { class: 'parameter' }, el('td', {}, input), el('td', {}, label)) };
}
