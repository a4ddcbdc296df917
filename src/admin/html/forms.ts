// Endpoints as rows of a table: a link, or a form whose parameters are the rows below it. Forms work without scripts.

import type { AdminHandler, AdminParameter } from '../admin-handler.js';
import type { QueryParameters } from '../http/messages/query-parameters.js';
import { escapeHtml } from './page.js';

export interface FormOptions {
  /** Sets the rows' ids apart where the endpoints have parameters of the same name. */
  readonly index: number;
  /** What the form begins with; empty when left out. */
  readonly values?: QueryParameters;
  /** Text of the button. When left out it is the endpoint's path, and looks like a link unless something is changed. */
  readonly button?: string;
}

/** The rows of one endpoint. */
export function endpointRows(handler: AdminHandler, options: FormOptions): string {
  const name = nameOf(handler);
  const { mutates, parameters } = handler;
  const isLink = !mutates && parameters.length === 0;
  const command = isLink ? `<a href='${name}'>${name}</a>` : form(handler, options.button);
  let rows = `<tr class='endpoint'><td>${command}</td><td>${escapeHtml(handler.help)}</td></tr>\n`;
  for (const parameter of parameters) rows += parameterRow(name, parameter, options);
  return rows;
}

/** The row of one parameter, which belongs to the form with the id `form`. */
export function parameterRow(form: string, parameter: AdminParameter, { index, values }: FormOptions): string {
  const id = `param-${index}-${form.replaceAll('/', '-')}-${escapeHtml(parameter.name)}`;
  const attributes = `name='${escapeHtml(parameter.name)}' id='${id}' form='${form}'`;
  const label = `<label for='${id}'>${escapeHtml(parameter.help)}</label>`;
  return `<tr class='parameter'><td>${control(parameter, attributes, values)}</td><td>${label}</td></tr>\n`;
}

/** The path without its leading slash, which is also the form's id: HandlerTable lets none in that would have to be escaped. */
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
