// The forms that the token endpoint gets (RFC 6749, 4.1.3 and 6). `credential`: the client's secret, or its assertion.

import type { OAuthRules } from './rules.js';
import { encodeFormValue } from './urls.js';

/** Exchanges a code. The code is as the authorization server has encoded it. */
export function codeForm(
  rules: OAuthRules,
  credential: string,
  code: string,
  redirectUri: string,
  verifier: string,
): string {
  const client = clientPart(rules, credential);
  return `grant_type=authorization_code&code=${code}${client}&redirect_uri=${encodeFormValue(redirectUri)}&code_verifier=${verifier}`;
}

/** Refreshes tokens. */
export function refreshForm(rules: OAuthRules, credential: string, token: string): string {
  return `grant_type=refresh_token&refresh_token=${encodeFormValue(token)}${clientPart(rules, credential)}`;
}

function clientPart({ authType, clientId }: OAuthRules, credential: string): string {
  if (authType === 'BASIC_AUTH') return '';
  const client = `&client_id=${encodeFormValue(clientId)}`;
  if (authType === 'TLS_CLIENT_AUTH') return client;
  if (authType === 'URL_ENCODED_BODY') return `${client}&client_secret=${encodeFormValue(credential)}`;
  return `${client}&client_assertion_type=${ASSERTION_TYPE}&client_assertion=${encodeFormValue(credential)}`;
}

const ASSERTION_TYPE = 'urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer';
