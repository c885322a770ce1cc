// Parses sentences with CoreNLP's own classes: `java -cp JARS Parse.java THREADS TAGGER PARSER [DEPENDENCIES]`.
//
// A line of standard input is NUMBER <tab> WORDS (one space between two); standard output gives, in any order,
//   ready <tab> CoreNLP's version <tab> Java's    when the models are loaded
//   NUMBER <tab> ok <tab> TREE <tab> HEADS    in the tree, words are numbers from 0; heads are from 1, 0 = root
//   NUMBER <tab> failed <tab> why
//   NUMBER <tab> memory    and the end, for how much memory there is must not decide on trees; 0: the models
// Run from source, so that it is compiled by, and fits, the Java and the CoreNLP at hand.

import edu.stanford.nlp.ling.TaggedWord;
import edu.stanford.nlp.ling.Word;
import edu.stanford.nlp.parser.common.ParserGrammar;
import edu.stanford.nlp.parser.nndep.DependencyParser;
import edu.stanford.nlp.tagger.maxent.MaxentTagger;
import edu.stanford.nlp.trees.GrammaticalStructure;
import edu.stanford.nlp.trees.GrammaticalStructureFactory;
import edu.stanford.nlp.trees.Tree;
import edu.stanford.nlp.trees.TypedDependency;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;

public class Parse {
  private static final long STACK = 512L << 20; // bytes of address space a thread: trees may be deep
  private static final PrintStream OUT = System.out;

  private final MaxentTagger tagger;
  private final ParserGrammar parser;
  private final Function<Tree, GrammaticalStructure> dependencies;
  private final BufferedReader input =
      new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

  Parse(String taggerModel, String parserModel, String dependencyModel) {
    tagger = new MaxentTagger(taggerModel);
    parser = ParserGrammar.loadModel(parserModel);
    if (dependencyModel == null) { // converted from the tree, punctuation included
      GrammaticalStructureFactory factory =
          parser.treebankLanguagePack().grammaticalStructureFactory(word -> true);
      dependencies = factory::newGrammaticalStructure;
    } else {
      DependencyParser model = DependencyParser.loadFromModelFile(dependencyModel);
      dependencies = tree -> model.predict(tree.taggedYield());
    }
  }

  public static void main(String[] words) throws InterruptedException {
    System.setOut(System.err); // whatever CoreNLP prints must not mix with the answers
    Thread.setDefaultUncaughtExceptionHandler( // a missing model or class is no sentence's fault
        (thread, error) -> {
          error.printStackTrace();
          Runtime.getRuntime().halt(1);
        });
    Parse parse = null;
    try {
      parse = new Parse(words[1], words[2], words.length > 3 ? words[3] : null);
    } catch (OutOfMemoryError error) {
      stop("0");
    }
    String version = MaxentTagger.class.getPackage().getImplementationVersion();
    answer("ready\t" + version + "\t" + System.getProperty("java.version"));
    List<Thread> threads = new ArrayList<>();
    for (int thread = 0; thread < Integer.parseInt(words[0]); thread++) {
      threads.add(new Thread(null, parse::work, "parser-" + thread, STACK));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private void work() {
    for (String line = next(); line != null; line = next()) {
      String[] sentence = line.split("\t", 2);
      try {
        answer(sentence[0] + "\tok\t" + parse(sentence[1].split(" ")));
      } catch (OutOfMemoryError error) {
        stop(sentence[0]);
      } catch (Exception | StackOverflowError error) {
        answer(sentence[0] + "\tfailed\t" + error.toString().replaceAll("\\s+", " "));
      }
    }
  }

  private String next() {
    synchronized (input) {
      try {
        return input.readLine();
      } catch (IOException error) {
        return null;
      }
    }
  }

  private String parse(String[] words) {
    List<Word> sentence = new ArrayList<>();
    for (String word : words) {
      sentence.add(new Word(word));
    }
    List<TaggedWord> tagged = tagger.tagSentence(sentence);
    Tree tree = parser.parse(tagged);
    if (tree == null || tree.yield().size() != words.length) {
      throw new IllegalStateException("the parser gives no tree of these words");
    }
    StringBuilder brackets = new StringBuilder();
    write(tree, new int[1], brackets);
    return brackets + "\t" + heads(tree, words.length);
  }

  private static void write(Tree tree, int[] leaves, StringBuilder brackets) {
    if (tree.isLeaf()) {
      brackets.append(' ').append(leaves[0]++);
      return;
    }
    brackets.append(brackets.length() > 0 ? " (" : "(").append(tree.value());
    for (Tree child : tree.children()) {
      write(child, leaves, brackets);
    }
    brackets.append(')');
  }

  /** The words' heads; a word that CoreNLP leaves without one hangs on the root. */
  private String heads(Tree tree, int count) {
    int[] heads = new int[count];
    Arrays.fill(heads, -1);
    int root = 0;
    for (TypedDependency arc : dependencies.apply(tree).typedDependencies()) {
      heads[arc.dep().index() - 1] = arc.gov().index();
      root = arc.gov().index() == 0 ? arc.dep().index() : root;
    }
    int others = root;
    return Arrays.stream(heads)
        .mapToObj(head -> String.valueOf(head < 0 ? others : head))
        .collect(Collectors.joining(" "));
  }

  private static synchronized void answer(String line) {
    byte[] bytes = (line + "\n").getBytes(StandardCharsets.UTF_8);
    OUT.write(bytes, 0, bytes.length);
    OUT.flush();
    if (OUT.checkError()) { // nobody listens any more
      Runtime.getRuntime().halt(1);
    }
  }

  private static void stop(String number) {
    answer(number + "\tmemory");
    Runtime.getRuntime().halt(3);
  }
}
