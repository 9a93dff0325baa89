// Reads one JSON request per line, writes one JSON answer per line; the library does the cryptography.
//   {"do": "seal", "pemKey", "scope", "namespace", "name", "value"}  -> {"ciphertext"}
//   {"do": "document", "pemKey", "scope", "namespace", "name", "values"} -> {"document"}
//   {"do": "open", "privateKey" (PEM, PKCS 8), "ciphertext", "label"} -> {"value"} or {"refused": true}
const { webcrypto } = require("node:crypto");
const readline = require("node:readline");
const { HybridDecrypt, encryptValue, getSealedSecret } = require("@socialgouv/aes-gcm-rsa-oaep");

async function open({ privateKey, ciphertext, label }) {
  const der = Buffer.from(privateKey.replace(/-----[A-Z ]+-----/g, ""), "base64");
  const key = await webcrypto.subtle.importKey("pkcs8", der, { name: "RSA-OAEP", hash: "SHA-256" }, false, ["decrypt"]);
  // The library slices an ArrayBuffer; a Buffer may share a larger one.
  const envelope = new Uint8Array(Buffer.from(ciphertext, "base64")).buffer;
  try {
    return { value: await HybridDecrypt(key, envelope, Buffer.from(label)) };
  } catch (error) {
    if (error.name !== "OperationError") throw error;
    return { refused: true };
  }
}

const answers = {
  seal: async (request) => ({ ciphertext: await encryptValue(request) }),
  document: async (request) => ({ document: await getSealedSecret(request) }),
  open,
};

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    console.log(JSON.stringify(await answers[request.do](request)));
  }
})();
