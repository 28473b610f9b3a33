#include "operators/retrieval/stemming.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "headrace/base/error.hpp"
#include "operators/retrieval/checksum.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

constexpr int kProbes = 16'384;
constexpr std::size_t kPiecesMin = 2;
constexpr std::size_t kPiecesMax = 6;

/// The pieces of made-up words: letters and, for Latin scripts, some endings, because longer endings would rarely occur
/// by chance. Different pieces would give other fingerprints, so older files would be rejected.
struct Pieces {
  std::string_view languages;  ///< Languages with these pieces, separated by spaces. The last entry covers all others.
  std::string_view pieces;     ///< Separated by spaces.
};
constexpr std::array kPieces = {
    Pieces{"russian serbian",
           "а а а е е и и о о н н т т с с р в в л к м м д п у ы ь б г з й ч я х ж ш щ ц ю э ё ђ "
           "ј љ њ ћ џ ого ему ость ение ами ать ешь ова ски"},
    Pieces{"greek",
           "α α ε ε ι ι ο ο σ σ ς ς τ ν ν υ η ω ρ π κ μ λ γ δ θ φ χ ψ ξ ζ β ά έ ή ί ό ύ ώ ϊ ος ων εις ουμε ικ ισμ"},
    Pieces{"armenian",
           "ա ա ա ե ե ի ի ո ո ու ն ն ն ր ր կ կ թ յ լ մ տ վ դ ս ց ք բ գ է ը ժ ծ հ ձ ղ ճ շ չ պ ջ ռ փ օ և "
           "ությ ական երի ներ ում ած"},
    Pieces{"arabic",
           "ا ا ا ل ل ي ي و و ن ن م م ت ت ه ب ر ك س ف ق ع د ح ج ش ص ط ض ظ غ ث ذ ز خ ة ى ئ ؤ أ إ آ ء ال "
           "ون ين ات ها كم وا"},
    Pieces{"hindi nepali",
           "क ख ग घ च छ ज झ ट ठ ड ढ ण त त थ द ध न न प फ ब भ म य र र ल व श ष स ह ा ा ा ि ी ी ु ू े े "
           "ै ो ो ौ ् ं ँ ः अ आ इ ई उ ए ों ाओं ियों ेगा हरू लाई को मा बाट"},
    Pieces{"tamil",
           "க க ங ச ஞ ட ண த த ந ப ம ம ய ர ல வ ழ ள ற ன ன ா ி ி ு ு ூ ெ ே ை ை ொ ோ ் ் ் அ ஆ இ ஈ உ எ ஏ ஒ கள் "
           "த்த ந்த க்க ில் ுக்கு"},
    Pieces{"yiddish",
           "א א ב ג ד ה ו ו וו ז ח ט י י יי ײ כ ך ל ל מ ם נ ן ס ע ע פ ף צ ץ ק ר ר ש ת אַ אָ גע צו ען ער עס "
           "קייט הייט ונג"},
    Pieces{"",
           "e e e e a a a a i i i i o o o u u n n n t t t r r s s s l l d d c c m m p p g h b f v y w k k j x q z à á "
           "â ã ä å ç è é ê ë ì í î ï ñ ò ó ô õ ö ø ù ú û ü ý ß ă ą ć č đ ė ę ğ ı ł ń ő ş š ș ţ ț ų ū ű ž ' 's ing "
           "ed ly ation ize ness ous ive ful able ance ogi ism ers ies eed sses ción mente idad ando iendo amos "
           "arían eur euse ement ique ité aient heit keit ung lich isch en em ern lijk heid eren azione evole "
           "issimo ções ível ului ilor ează het arna erna inen ssa ista ksi nak ban akat lar ler dan mak yor iai "
           "ams uose nya kan men per zio tze aldi íocht anna"}};

/// Words that would rarely occur by chance, and that versions 2 and 3 of Snowball stem differently.
constexpr std::array<std::string_view, 41> kWords{
    "added",         "ebbing",       "erred",        "offing",     "evening",   "emergency",  "apologists",
    "geologist",     "psychologist", "hying",        "vying",      "internal",  "interval",   "lateral",
    "organic",       "organism",     "organization", "pasted",     "universal", "university", "interfering",
    "international", "educacion",    "resolucion",   "divano",     "bijoux",    "beauvais",   "c'est",
    "abgebildet",    "ajerų",        "altaret",      "asters",     "aberației", "aa'nın",     "aaltjes",
    "allahin",       "news",         "skis",         "generously", "dying",     "ίσα"};

/// The parts between spaces.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<std::string_view> pieces_of(const std::string& language) {
  const auto* const found = std::ranges::find_if(kPieces, [&](const Pieces& pieces) {
    return pieces.languages.empty() || std::ranges::count(split(pieces.languages), language) != 0;
  });
  return split(found->pieces);
}

std::uint64_t compute_fingerprint(const std::string& language) {
  const auto pieces = pieces_of(language);
  std::uint64_t state = 1;
  std::string word;
  std::string stems;
  for (const std::string_view known : kWords) {
    stems += stem_of(known, language);
    stems += '\n';
  }
  for (int i = 0; i < kProbes; ++i) {
    word.clear();
    const std::size_t count = kPiecesMin + next_random(state) % (kPiecesMax - kPiecesMin + 1);
    for (std::size_t k = 0; k < count; ++k) word += pieces[next_random(state) % pieces.size()];
    stems += stem_of(word, language);
    stems += '\n';
  }
  return checksum(std::as_bytes(std::span(stems)));
}

}  // namespace

void check_stem_language(const std::string& language) {
  if (language.empty()) return;  // most often: every query that is compiled has a tokenizer
  static const auto languages = stem_languages();
  if (std::ranges::find(languages, language) != languages.end()) return;
  if (languages.empty()) {
    throw UsageError("stemming: Headrace was built without libstemmer (Debian: libstemmer-dev)");
  }
  throw UsageError(
      fmt::format("stemming: there is no language '{}'; the languages are {}", language, fmt::join(languages, ", ")));
}

std::uint64_t stem_fingerprint(const std::string& language) {
  static std::mutex mutex;
  static std::map<std::string, std::uint64_t> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(language);
  if (found != known.end()) return found->second;
  return known.emplace(language, compute_fingerprint(language)).first->second;
}

}  // namespace headrace::operators
