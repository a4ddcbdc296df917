// TLS contexts and certificates.

#include <node_api.h>

#include <cerrno>

#include "node/arguments.h"
#include "node/bindings.h"
#include "node/tls-values.h"
#include "node/values.h"
#include "tls/certificate.h"
#include "tls/identities.h"
#include "tls/registry.h"
#include "tls/stapling.h"

namespace baton {
namespace {

bool readIdentity(napi_env env, napi_value value, TlsIdentitySettings& to) {
  napi_value password = property(env, value, "password");
  to.hasPassword = !isAbsent(env, password);
  return readText(env, property(env, value, "chain"), "chain", to.chain) &&
         readText(env, property(env, value, "key"), "key", to.key) &&
         readText(env, property(env, value, "pkcs12"), "pkcs12", to.pkcs12) &&
         readText(env, property(env, value, "ocspStaple"), "ocspStaple", to.ocspStaple) &&
         readText(env, password, "password", to.password);
}

bool readIdentities(napi_env env, napi_value value, std::vector<TlsIdentitySettings>& to) {
  uint32_t count = 0;
  if (napi_get_array_length(env, value, &count) != napi_ok) {
    throwType(env, "identities must be an array");
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    napi_value element = nullptr;
    napi_get_element(env, value, i, &element);
    if (!readIdentity(env, element, to.emplace_back())) return false;
  }
  return true;
}

bool readTrustDomains(napi_env env, napi_value value, std::vector<TlsTrustDomainSettings>& to) {
  uint32_t count = 0;
  if (napi_get_array_length(env, value, &count) != napi_ok) {
    throwType(env, "trustDomains must be an array");
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    napi_value element = nullptr;
    napi_get_element(env, value, i, &element);
    TlsTrustDomainSettings& domain = to.emplace_back();
    if (!readText(env, property(env, element, "name"), "name", domain.name) ||
        !readText(env, property(env, element, "roots"), "roots", domain.roots)) {
      return false;
    }
  }
  return true;
}

bool readSettings(napi_env env, napi_value value, TlsSettings& to) {
  struct {
    const char* name;
    std::string& to;
  } texts[] = {{"ciphers", to.ciphers},
               {"cipherSuites", to.cipherSuites},
               {"groups", to.groups},
               {"signatureAlgorithms", to.signatureAlgorithms},
               {"alpn", to.alpn},
               {"roots", to.roots},
               {"crl", to.crl},
               {"peerRules", to.peerRules},
               {"sessionIdContext", to.sessionIdContext}};
  for (auto& text : texts) {
    if (!readText(env, property(env, value, text.name), text.name, text.to)) return false;
  }
  struct {
    const char* name;
    bool& to;
  } flags[] = {{"isServer", to.isServer},
               {"prefersClientCiphers", to.prefersClientCiphers},
               {"scansAllIdentities", to.scansAllIdentities},
               {"checksLeafCrlOnly", to.checksLeafCrlOnly},
               {"allowsExpired", to.allowsExpired},
               {"sendsRootNames", to.sendsRootNames},
               {"requiresServerName", to.requiresServerName},
               {"hasTickets", to.hasTickets},
               {"hasStatefulSessions", to.hasStatefulSessions},
               {"allowsRenegotiation", to.allowsRenegotiation},
               {"keepsKeys", to.keepsKeys}};
  for (auto& flag : flags) {
    if (!readBool(env, property(env, value, flag.name), flag.name, flag.to)) return false;
  }
  int32_t verify = 0;
  int32_t ocspPolicy = 0;
  struct {
    const char* name;
    int32_t least;
    int32_t& to;
  } numbers[] = {{"minVersion", 0, to.minVersion},         {"maxVersion", 0, to.maxVersion},
                 {"securityLevel", 0, to.securityLevel},   {"verify", 0, verify},
                 {"verifyDepth", -1, to.verifyDepth},      {"sessionSeconds", 0, to.sessionSeconds},
                 {"maxClientSessions", 0, to.maxClientSessions}, {"ocspPolicy", 0, ocspPolicy}};
  for (auto& number : numbers) {
    if (!readInt(env, property(env, value, number.name), number.name, number.least, number.to)) return false;
  }
  if (verify > static_cast<int32_t>(TlsVerify::Required)) {
    throwType(env, "verify must be 0, 1 or 2");
    return false;
  }
  to.verify = static_cast<TlsVerify>(verify);
  if (ocspPolicy > static_cast<int32_t>(OcspPolicy::MustStaple)) {
    throwType(env, "ocspPolicy must be 0, 1 or 2");
    return false;
  }
  to.ocspPolicy = static_cast<OcspPolicy>(ocspPolicy);
  return readTrustDomains(env, property(env, value, "trustDomains"), to.trustDomains) &&
         readIdentities(env, property(env, value, "identities"), to.identities);
}

napi_value createTlsContext(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  TlsSettings settings;
  if (!readSettings(env, arguments[0], settings)) return nullptr;
  TlsMistake mistake;
  std::shared_ptr<TlsContext> context = TlsContext::create(std::move(settings), mistake);
  if (context != nullptr) return makeInt(env, TlsRegistry::shared().add(std::move(context)));
  napi_value made = nullptr;
  napi_create_object(env, &made);
  napi_set_named_property(env, made, "field", makeText(env, mistake.field));
  napi_set_named_property(env, made, "reason", makeText(env, mistake.reason));
  return made;
}

napi_value reserveTlsContext(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  bool isServer = false;
  if (!readBool(env, arguments[0], "isServer", isServer)) return nullptr;
  std::shared_ptr<TlsContext> context = TlsContext::unready(isServer);
  if (context == nullptr) return throwErrno(env, "reserveTlsContext", ENOMEM);
  return makeInt(env, TlsRegistry::shared().add(std::move(context)));
}

napi_value replaceTlsContext(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t to;
  int32_t from;
  if (!readInt(env, arguments[0], "context", 1, to) || !readInt(env, arguments[1], "by", 1, from)) return nullptr;
  return TlsRegistry::shared().replace(to, from) ? nullptr : throwType(env, "not two TLS contexts");
}

napi_value releaseTlsContext(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t number;
  if (readInt(env, arguments[0], "context", 0, number)) TlsRegistry::shared().remove(number);
  return nullptr;
}

napi_value setTicketKeys(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string keys;
  if (!readText(env, arguments[0], "keys", keys)) return nullptr;
  int32_t number = 0;
  if (!isAbsent(env, arguments[1]) && !readInt(env, arguments[1], "context", 1, number)) return nullptr;
  bool isSet = false;
  if (number == 0) {
    isSet = TicketKeys::shared().set(keys);
  } else {
    const std::shared_ptr<TlsContext> context = TlsRegistry::shared().find(number);
    if (context == nullptr) return throwType(env, "context is not a TLS context");
    isSet = context->setTicketKeys(keys);
  }
  return isSet ? nullptr : throwType(env, "keys must be of 80 bytes each");
}

napi_value tlsContextCount(napi_env env, napi_callback_info) {
  return makeInt(env, static_cast<int32_t>(TlsRegistry::shared().size()));
}

napi_value readPemCertificates(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string pem;
  if (!readText(env, arguments[0], "pem", pem)) return nullptr;
  const CertificateStack all = readCertificates(pem);
  napi_value made = nullptr;
  if (all == nullptr) return made;
  napi_create_array(env, &made);
  for (int i = 0; i < sk_X509_num(all.get()); ++i) {
    napi_set_element(env, made, static_cast<uint32_t>(i), makeRawText(env, toDer(sk_X509_value(all.get(), i))));
  }
  return made;
}

napi_value describeOcspResponse(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string der;
  std::string reason;
  OcspStaple staple;
  if (!readText(env, arguments[0], "der", der) || !readStaple(der, staple, reason)) return nullptr;
  napi_value made = nullptr;
  napi_create_object(env, &made);
  napi_set_named_property(env, made, "thisUpdate", makeDouble(env, static_cast<double>(staple.thisUpdate)));
  napi_set_named_property(env, made, "nextUpdate", makeDouble(env, static_cast<double>(staple.nextUpdate)));
  return made;
}

napi_value describeCertificate(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  void* der;
  size_t length;
  if (!readArray(env, arguments[0], "der", napi_uint8_array, false, der, length)) return nullptr;
  const CertificateHandle certificate = readDer(static_cast<const uint8_t*>(der), length);
  if (certificate == nullptr) return nullptr;
  const CertificateFacts facts = describe(certificate.get());
  napi_value made = nullptr;
  napi_create_object(env, &made);
  napi_set_named_property(env, made, "sha256", makeRawText(env, facts.sha256));
  napi_set_named_property(env, made, "publicKeySha256", makeRawText(env, facts.publicKeySha256));
  napi_value names = nullptr;
  napi_create_array(env, &names);
  uint32_t index = 0;
  for (const CertificateFacts::Name& each : facts.names) {
    napi_value name = nullptr;
    napi_create_object(env, &name);
    napi_set_named_property(env, name, "type", makeInt(env, each.type));
    napi_set_named_property(env, name, "value", makeRawText(env, each.text));
    if (!each.oid.empty()) napi_set_named_property(env, name, "oid", makeText(env, each.oid));
    napi_set_element(env, names, index++, name);
  }
  napi_set_named_property(env, made, "names", names);
  return made;
}

}  // namespace

void bindTls(napi_env env, napi_value exports) {
  addMethods(env, exports,
             {method("createTlsContext", createTlsContext), method("reserveTlsContext", reserveTlsContext),
              method("replaceTlsContext", replaceTlsContext), method("releaseTlsContext", releaseTlsContext),
              method("setTicketKeys", setTicketKeys), method("tlsContextCount", tlsContextCount),
              method("readPemCertificates", readPemCertificates), method("describeCertificate", describeCertificate),
              method("describeOcspResponse", describeOcspResponse)});
}

}  // namespace baton
