// Endpoints as table rows: a link, or a form with its parameters as the rows below. Forms work without scripts.

import type { AdminHandler, AdminParameter } from '../admin-handler.js';
import type { QueryParameters } from '../http/messages/query-parameters.js';
import { escapeHtml } from './page.js';

export interface FormOptions {
  /** Makes the ids of the rows unique where endpoints have parameters of the same name. */
  readonly index: number;
  /** Initial values; default: empty. */
  readonly values?: QueryParameters;
  /** Text of the button. Default: the path, displayed as a link unless the endpoint mutates. */
  readonly button?: string;
}

/** Returns the rows of one endpoint. */
export function endpointRows(handler: AdminHandler, options: FormOptions): string {
  const name = nameOf(handler);
  const { mutates, parameters } = handler;
  const isLink = !mutates && parameters.length === 0;
  const command = isLink ? `<a href='${name}'>${name}</a>` : form(handler, options.button);
  let rows = `<tr class='endpoint'><td>${command}</td><td>${escapeHtml(handler.help)}</td></tr>\n`;
  for (const parameter of parameters) rows += parameterRow(name, parameter, options);
  return rows;
}

/** Returns the row of one parameter for the form with the id `form`. */
export function parameterRow(form: string, parameter: AdminParameter, { index, values }: FormOptions): string {
  const id = `param-${index}-${form.replaceAll('/', '-')}-${escapeHtml(parameter.name)}`;
  const attributes = `name='${escapeHtml(parameter.name)}' id='${id}' form='${form}'`;
  const label = `<label for='${id}'>${escapeHtml(parameter.help)}</label>`;
  return `<tr class='parameter'><td>${control(parameter, attributes, values)}</td><td>${label}</td></tr>\n`;
}

/**
 * Returns the path without its leading slash, which is also the form's id. HandlerTable accepts only paths that need no
 * escaping.
 */
export function nameOf(handler: AdminHandler): string {
  return handler.path.slice(1);
}

function form(handler: AdminHandler, text: string | undefined): string {
  const name = nameOf(handler);
  const method = handler.mutates ? 'post' : 'get';
  const isLink = text === undefined && !handler.mutates;
  const button = `<button class='${isLink ? 'link' : 'button'}'>${escapeHtml(text ?? name)}</button>`;
  return `<form action='${name}' method='${method}' id='${name}' class='home-form'>${button}</form>`;
}

function control(parameter: AdminParameter, attributes: string, values: QueryParameters | undefined): string {
  const { name, choices, preset, isFlag } = parameter;
  if (isFlag === true) return `<input type='checkbox' ${attributes}${values?.has(name) ? ' checked' : ''}>`;
  const value = values?.get(name) ?? preset ?? '';
  if (choices === undefined) return `<input type='text' ${attributes} value='${escapeHtml(value)}' spellcheck='false'>`;
  const options = choices.map((choice) => {
    const text = escapeHtml(choice);
    return `<option value='${text}'${choice === value ? ' selected' : ''}>${text}</option>`;
  });
  return `<select ${attributes}>${options.join('')}</select>`;
}
