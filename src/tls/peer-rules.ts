// The rules for a peer's certificate that OpenSSL does not check: subject alternative names, digests, and certificates that are
// accepted although nothing vouches for them. Rules travel to the workers as text, with the context that they belong to.

import { onOneLine } from '../common/text/shown.js';
import type { StringMatcher } from '../config/generated/api.js';
import type { CertificateEvidence } from '../io/shim.js';
import { compileNameMatcher, type NameMatcher } from '../stats/settings/name-matcher.js';
import { NameType, nameText } from './certificate-names.js';

export interface NameRule {
  readonly type: NameType;
  readonly matcher: StringMatcher;
  /** The type of an otherName, in dotted form. */
  readonly oid: string;
}

/** In a form for JSON. */
export interface PeerRules {
  /** One of them must match one of the names; empty: any name is accepted. */
  readonly names: readonly NameRule[];
  /** SHA-256 of the certificate and of its public key, in hexadecimal. One of either must match, if there are any. */
  readonly digests: readonly string[];
  readonly keyDigests: readonly string[];
  /** The chain is verified; otherwise a rule must vouch for the certificate. */
  readonly hasRoots: boolean;
  /** The certificate is that of a workload in a trust domain. */
  readonly hasTrustDomains: boolean;
  readonly acceptsUntrusted: boolean;
}

/** Names that the certificate of one connection must have. */
export interface ExpectedNames {
  /** One of its names of any type must be this one; undefined: any is accepted. */
  readonly listed: string | undefined;
  /** In place of the rules, one of its DNS names must stand for this one; '': the rules apply. */
  readonly serverName: string;
}

/** Which counter a refused certificate increments. */
export type Refusal = 'fail_verify_error' | 'fail_verify_san' | 'fail_verify_cert_hash';

export interface Verdict {
  readonly isAccepted: boolean;
  readonly isVerified: boolean;
  /** Undefined unless something was wrong, which ACCEPT_UNTRUSTED may have forgiven. */
  readonly refusal: Refusal | undefined;
  /** As in the text of a failure; '' without refusal. */
  readonly detail: string;
}

/** X509_V_ERR_APPLICATION_VERIFICATION: the native engine has refused a certificate before verifying its chain. */
export const SVID_REFUSED = 50;
/** Why, by the depth of that error, in Envoy's words: it cannot be that of a workload; its trust domain is unknown. */
const SVID_REFUSALS = ['cert precheck', 'no trust bundle store'];

const UNTRUSTED: Verdict = { isAccepted: true, isVerified: false, refusal: undefined, detail: '' };
const VERIFIED: Verdict = { isAccepted: true, isVerified: true, refusal: undefined, detail: '' };

export class CompiledPeerRules {
  readonly #rules: PeerRules;
  readonly #matchers: readonly NameMatcher[];

  /** @throws BatonError for an invalid matcher */
  constructor(rules: PeerRules) {
    this.#rules = rules;
    this.#matchers = rules.names.map(({ matcher }) => compileNameMatcher(matcher));
  }

  /**
   * Judges a certificate. `error` and `depth`: see TransportOptions.onVerdict(). `errorText`: of the error. `expected`: of this
   * connection.
   */
  judge(
    error: number,
    depth: number,
    errorText: string,
    facts: CertificateEvidence | undefined,
    expected: ExpectedNames = NO_NAMES,
  ): Verdict {
    const { digests, hasRoots, hasTrustDomains, keyDigests } = this.#rules;
    if (error === SVID_REFUSED) return this.#refused('fail_verify_error', SVID_REFUSALS[depth] ?? 'SPIFFE');
    if (error !== 0) {
      const detail = `X509_verify_cert: certificate verification error at depth ${depth}: ${errorText}`;
      return this.#refused('fail_verify_error', detail);
    }
    if (facts === undefined) return this.#refused('fail_verify_error', 'unreadable certificate');
    const { listed, serverName } = expected;
    if (listed !== undefined && !hasName(facts, listed)) {
      const detail = `verify SAN list, expected SANs: [${onOneLine(listed)}], certificate SANs: [${namesText(facts)}]`;
      return this.#refused('fail_verify_san', detail);
    }
    const hasMatchers = this.#matchers.length > 0 || serverName !== '';
    if (hasMatchers && !this.#isNamed(facts, serverName)) {
      const detail = hasTrustDomains ? 'SAN match' : `SAN matcher, certificate SANs are [${namesText(facts)}]`;
      return this.#refused('fail_verify_san', detail);
    }
    const hasDigests = digests.length > 0 || keyDigests.length > 0;
    if (hasDigests && !digests.includes(hex(facts.sha256)) && !keyDigests.includes(hex(facts.publicKeySha256))) {
      return this.#refused('fail_verify_cert_hash', 'cert hash and spki');
    }
    if (hasRoots || hasDigests) return VERIFIED;
    // Anybody can make a certificate with the right name.
    return hasMatchers || listed !== undefined
      ? this.#refused('fail_verify_san', 'names without a trusted CA')
      : UNTRUSTED;
  }

  #refused(refusal: Refusal, what: string): Verdict {
    const isAccepted = this.#rules.acceptsUntrusted;
    return { isAccepted, isVerified: false, refusal, detail: `verify cert failed: ${what}` };
  }

  #isNamed(facts: CertificateEvidence, serverName: string): boolean {
    return facts.names.some((name) => {
      const text = nameText(name);
      const isDns = name.type === NameType.Dns;
      if (serverName !== '') return isDns && matchesDnsName(serverName, text);
      return this.#rules.names.some((rule, index) => {
        if (rule.type !== name.type) return false;
        if (rule.type === NameType.Other && rule.oid !== name.oid) return false;
        const { exact } = rule.matcher;
        return isDns && exact !== undefined ? matchesDnsName(exact, text) : this.#matchers[index]!.matches(text);
      });
    });
  }
}

const NO_NAMES: ExpectedNames = { listed: undefined, serverName: '' };

function hasName({ names }: CertificateEvidence, expected: string): boolean {
  return names.some((name) => {
    const text = nameText(name);
    return name.type === NameType.Dns ? matchesDnsName(expected, text) : text === expected;
  });
}

/** Characters of names that a text shows: it gets into logs and answers, and a certificate can have thousands of names. */
const MAX_NAMES_TEXT = 1000;

function namesText({ names }: CertificateEvidence): string {
  let text = '';
  let shown = 0;
  for (; shown < names.length; shown++) {
    const next = `${shown > 0 ? ', ' : ''}${nameText(names[shown]!)}`;
    if (text.length + next.length > MAX_NAMES_TEXT) break;
    text += next;
  }
  if (shown === 0 && names.length > 0) text = `${nameText(names[shown++]!).slice(0, MAX_NAMES_TEXT)} …`;
  const others = names.length - shown;
  return onOneLine(others > 0 ? `${text} and ${others} more` : text);
}

/** Returns whether a DNS name of a certificate, which may begin with `*.`, stands for `expected`. */
export function matchesDnsName(expected: string, name: string): boolean {
  const wanted = expected.toLowerCase();
  const pattern = name.toLowerCase();
  if (wanted === pattern) return true;
  if (!pattern.startsWith('*.')) return false;
  const dot = wanted.indexOf('.');
  return dot > 0 && wanted.slice(dot) === pattern.slice(1);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** Compiled rules by their text. A thread sees few texts, unless contexts are replaced very often. */
const compiled = new Map<string, CompiledPeerRules>();
const MAX_COMPILED = 1024;

/** Returns the rules of a context, from their JSON text. */
export function peerRules(text: string): CompiledPeerRules {
  let rules = compiled.get(text);
  if (rules === undefined) {
    if (compiled.size >= MAX_COMPILED) compiled.clear();
    rules = new CompiledPeerRules(JSON.parse(text) as PeerRules);
    compiled.set(text, rules);
  }
  return rules;
}
