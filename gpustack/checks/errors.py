"""The findings that are no rules: what each id means that is raised where something can't be read, rendered or done.

They can't be waived. Who raises one adds its line here; a test compares the table with the code, and
docs/rules/index.md shows it. An id has one meaning, for ever.
"""

from __future__ import annotations

RAISED: dict[str, str] = {
    # A policy, layer or other file that can't be used: policy/
    "GPU001": "A file or folder can't be read",
    "GPU002": "A file is no text in UTF-8, or has invisible characters in it",
    "GPU003": "A file is not valid YAML",
    "GPU004": "A key stands twice in the same mapping",
    "GPU005": "A key is no name: a number, a boolean, a mapping, nothing",
    "GPU006": "A file is nested too deep, or its aliases stand for too much",
    "GPU007": "A file holds more than one document",
    "GPU008": "A file is empty, or holds no mapping",
    "GPU009": "A value has a YAML tag that plain data has no use for",
    "GPU010": "A number is too large, or none that JSON can hold",
    "GPU011": "Layers and policy can't be merged: a mapping meets something else, a list holds nothing or a name twice",
    "GPU012": "A file is no policy or layer, but something else",
    "GPU013": "A layer can't be found or used",
    "GPU014": "Release, Kubernetes version or platform is missing or not known, so there are no defaults",
    "GPU015": "A layer lies among the policies of clusters",
    "GPU016": "A key is not known",
    "GPU017": "A value is missing, or of the wrong type",
    "GPU018": "A value has the right type and can't be used",
    "GPU019": "A path that was asked for is not in the effective spec",
    "GPU020": "Two files describe one cluster",
    # What was asked for on the command line: cli/
    "GPU021": "No cluster has this name",
    "GPU022": "Git can't compare with this revision",
    "GPU023": "Nothing was rendered yet",
    "GPU024": "The index of a rendered cluster can't be read",
    "GPU025": "A rendered file is missing",
    "GPU026": "The command line can't be understood",
    "GPU027": "The folder to render into has no name",
    "GPU028": "There is no policy",
    "GPU029": "Git is not installed",
    "GPU033": "A word means several clusters where one is wanted",
    # Waivers: policy/waivers.py, compiler/judge.py
    "GPU030": "waivers.yaml is no list of waivers",
    "GPU031": "A waiver expired",
    "GPU032": "A waiver covers nothing",
    # A spec from which a component can't be rendered: components/inputs/
    "GPU040": "An image has no repository, name or version",
    "GPU041": "A configuration stands beside the sharing of a pool, and both say the same thing",
    "GPU042": "The name of a pool is that of a configuration which exists already",
    "GPU043": "A Secret would be written to dist/, and so to Git",
    "GPU051": "A node pool's operating system is not said or not known, so there is no driver image",
    "GPU052": "A node pool's kernel is not said, so there is no precompiled driver",
    "GPU053": "One kernel is said to run on two operating systems",
    "GPU054": "A module can't be used with a precompiled driver",
    "GPU055": "A precompiled driver is named by a digest",
    "GPU056": "The driver has no such probe",
    "GPU057": "Nothing says which keys a ConfigMap has that is mounted into the driver",
    "GPU058": "Nothing is known about where a driver image looks for its configuration",
    "GPU059": "GPUDirect Storage needs the open kernel modules",
    "GPU060": "Compute domains are on, and no node pool can have any",
    "GPU080": "Nothing tells the PCI id of a GPU that KubeVirt is to permit",
    "GPU081": "Nothing tells the vGPU types that KubeVirt is to permit",
    "GPU082": "There is no GPU that KubeVirt could permit",
    "GPU083": "The HyperConverged operator sets KubeVirt's feature gates itself",
    # A render that can't be written as it is: compiler/
    "GPU204": "Two objects have one name",
    # Objects, tools, and the machine: catalog/, compiler/, cli/
    "GPU900": "A Kubernetes version can't be read, or is none that gpustack has the API of",
    "GPU901": "An object breaks its schema",
    "GPU902": "An object is of a kind that the cluster's Kubernetes does not have",
    "GPU903": "kubeconform refuses an object",
    "GPU904": "kubeconform gives no verdict about an object",
    "GPU905": "kubeconform looked at another number of objects than it was given",
    "GPU906": "There is no kubeconform",
    "GPU907": "There is no Node.js that can be used",
    "GPU908": "gpustack's JSON schemas are missing",
    "GPU909": "A process of a render was killed",
    "GPU920": "A cluster's folder in dist/ is a link or a file",
    "GPU921": "dist/ can't be written",
    "GPU922": "A file of somebody else stands where a rendered one goes",
    "GPU923": "The system refuses something",
    "GPU924": "A report can't be written",
    "GPU999": "A defect of gpustack",
}
