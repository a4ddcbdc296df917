#include "node/tls-values.h"

#include <openssl/err.h>

#include <algorithm>
#include <cstring>

#include "node/arguments.h"
#include "node/values.h"
#include "tls/certificate.h"

namespace baton {
namespace {

const char* textOr(const char* text) { return text == nullptr ? "" : text; }

// The name of a signature algorithm as in the TLS registry, of which OpenSSL knows the parts.
std::string signatureName(SSL* ssl) {
  int digest = NID_undef;
  int type = NID_undef;
  if (SSL_get_peer_signature_type_nid(ssl, &type) != 1) return "";
  SSL_get_peer_signature_nid(ssl, &digest);
  std::string name = OBJ_nid2sn(type);
  if (digest != NID_undef) name += std::string("+") + OBJ_nid2sn(digest);
  return name;
}

std::string groupName(SSL* ssl) {
  const auto group = static_cast<int>(SSL_get_negotiated_group(ssl));
  return group <= 0 ? "" : textOr(SSL_group_to_name(ssl, group));
}

}  // namespace

bool readText(napi_env env, napi_value value, const char* name, std::string& to) {
  if (isAbsent(env, value)) return true;
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, nullptr, 0, &length) == napi_ok) {
    to.resize(length);
    napi_get_value_string_utf8(env, value, to.data(), length + 1, &length);
    return true;
  }
  void* bytes;
  if (!readArray(env, value, name, napi_uint8_array, false, bytes, length)) return false;
  to.assign(static_cast<const char*>(bytes), length);
  return true;
}

napi_value makeText(napi_env env, const std::string& text) {
  napi_value made = nullptr;
  napi_create_string_utf8(env, text.data(), text.size(), &made);
  return made;
}

napi_value makeRawText(napi_env env, const std::string& bytes) { return makeBytes(env, bytes.data(), bytes.size()); }

napi_value makeDouble(napi_env env, double value) {
  napi_value made = nullptr;
  napi_create_double(env, value, &made);
  return made;
}

napi_value makeTlsState(napi_env env, const TlsSession& session, int32_t* numbers) {
  SSL* ssl = session.ssl();
  const unsigned char* alpn = nullptr;
  unsigned alpnLength = 0;
  SSL_get0_alpn_selected(ssl, &alpn, &alpnLength);
  const char* serverName = textOr(SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name));
  const SSL_CIPHER* cipher = SSL_get_current_cipher(ssl);
  const SSL_SESSION* known = SSL_get0_session(ssl);
  unsigned idLength = 0;
  const unsigned char* id = known == nullptr ? nullptr : SSL_SESSION_get_id(known, &idLength);
  int type = NID_undef;
  int digest = NID_undef;
  if (SSL_get_peer_signature_type_nid(ssl, &type) == 1) SSL_get_peer_signature_nid(ssl, &digest);
  const bool hasPeer = SSL_get0_peer_certificate(ssl) != nullptr;
  numbers[kStateVersion] = SSL_version(ssl);
  numbers[kStateCipher] = cipher == nullptr ? 0 : SSL_CIPHER_get_protocol_id(cipher);
  numbers[kStateGroup] = std::max(0, static_cast<int>(SSL_get_negotiated_group(ssl)));
  numbers[kStateSignature] = type == NID_undef ? 0 : type << 16 | digest;
  numbers[kStateStaple] = static_cast<int32_t>(session.staple());
  numbers[kStateFlags] = (SSL_session_reused(ssl) == 1 ? kStateResumed : 0) | (hasPeer ? kStateHasPeer : 0) |
                         (hasPeer && SSL_get_verify_result(ssl) == X509_V_OK ? kStateVerified : 0);
  numbers[kStateAlpnLength] = static_cast<int32_t>(alpnLength);
  numbers[kStateNameLength] = static_cast<int32_t>(strlen(serverName));
  ERR_clear_error();
  // One string costs less than three, and much less than an array of bytes.
  std::string texts(reinterpret_cast<const char*>(alpn), alpnLength);
  texts += serverName;
  texts.append(reinterpret_cast<const char*>(id), idLength);
  napi_value made = nullptr;
  napi_create_string_latin1(env, texts.data(), texts.size(), &made);
  return made;
}

napi_value makeTlsNames(napi_env env, const TlsSession& session) {
  SSL* ssl = session.ssl();
  napi_value made = nullptr;
  napi_create_object(env, &made);
  napi_set_named_property(env, made, "cipher", makeText(env, textOr(SSL_get_cipher_name(ssl))));
  napi_set_named_property(env, made, "group", makeText(env, groupName(ssl)));
  napi_set_named_property(env, made, "signature", makeText(env, signatureName(ssl)));
  ERR_clear_error();
  return made;
}

napi_value makePeerCertificates(napi_env env, const TlsSession& session) {
  napi_value made = nullptr;
  napi_create_array(env, &made);
  X509* leaf = SSL_get0_peer_certificate(session.ssl());
  if (leaf == nullptr) return made;
  uint32_t count = 0;
  napi_set_element(env, made, count++, makeRawText(env, toDer(leaf)));
  // A client's view of the chain begins with the leaf, a server's does not.
  const STACK_OF(X509)* chain = SSL_get_peer_cert_chain(session.ssl());
  for (int i = 0; chain != nullptr && i < sk_X509_num(chain); ++i) {
    X509* each = sk_X509_value(chain, i);
    if (i == 0 && X509_cmp(each, leaf) == 0) continue;
    napi_set_element(env, made, count++, makeRawText(env, toDer(each)));
  }
  return made;
}

napi_value makePeerIssuer(napi_env env, const TlsSession& session) {
  const STACK_OF(X509)* chain = SSL_get0_verified_chain(session.ssl());
  return chain == nullptr || sk_X509_num(chain) < 2 ? nullptr : makeRawText(env, toDer(sk_X509_value(chain, 1)));
}

napi_value makeOwnCertificate(napi_env env, const TlsSession& session) {
  X509* own = SSL_get_certificate(session.ssl());
  return own == nullptr ? nullptr : makeRawText(env, toDer(own));
}

}  // namespace baton
